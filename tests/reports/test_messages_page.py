"""The page of messages in a browser: its axis, the points that it draws, and paper."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from bench.support.devtools import Tab, address_of, browser

from tests.support.browser import needs_browser
from watchkeeper import simulate
from watchkeeper.reports import write_messages_html

Point = tuple[int, float]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run in which a host is lost."""
    folder = tmp_path_factory.mktemp("messages")
    trace = simulate("broker-crash-unflushed", seed=0).trace
    return folder / write_messages_html(trace, folder)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A page in a browser."""
    with browser() as opened:
        yield opened


@pytest.fixture
def shown(page: Path, tab: Tab) -> Tab:
    """The page in a window in which its charts are longer than a page of paper has left."""
    tab.show(width=900)
    tab.open(address_of(page))
    return tab


# --- the axis --------------------------------------------------------------------------


@needs_browser
def test_the_moments_on_an_axis(shown: Tab) -> None:
    """They are in the part that is shown, evenly apart by a round step, and few."""
    drawn = random.Random(1)
    parts = []
    for _ in range(200):
        begins = drawn.randrange(10**9)
        parts.append((begins, begins + drawn.randrange(1, 10**9), drawn.randrange(1, 20)))
    found = shown.run(f"{json.dumps(parts)}.map(([from, to, most]) => ticks(from, to, most))")

    for (begins, ends, most), moments in zip(parts, found, strict=True):
        assert len(moments) <= most + 1
        assert all(begins <= at <= ends for at in moments)
        steps = {after - before for before, after in pairwise(moments)}
        assert len(steps) <= 1
        for step in steps:
            assert str(step).rstrip("0") in ("1", "2", "5")
            assert all(at % step == 0 for at in moments)
    assert any(len(moments) > 5 for moments in found)


# --- the points ------------------------------------------------------------------------


def column(shown: Tab, points: list[Point]) -> list[tuple[int, list[Point]]]:
    """The points of each pixel."""
    places = shown.run(f"{json.dumps(points)}.map(([us]) => Math.round(place(us) - LEFT))")
    grouped = groupby(zip(places, points, strict=True), key=lambda pair: pair[0])
    return [(at, [point for _, point in pairs]) for at, pairs in grouped]


@needs_browser
def test_the_points_of_a_pixel_are_covered_by_four(shown: Tab) -> None:
    """Its first and its last, its lowest and its highest: the picture is the same."""
    drawn = random.Random(2)
    end = shown.run("data.end")
    moments = sorted(drawn.sample(range(end), 6_000))
    points = [(at, drawn.random()) for at in moments]
    kept = [tuple(one) for one in shown.run(f"pointsInSight({json.dumps(points)})")]

    whole, few = column(shown, points), column(shown, kept)
    assert [at for at, _ in few] == [at for at, _ in whole]
    for (_, every), (_, some) in zip(whole, few, strict=True):
        assert len(some) <= 4
        assert set(some) <= set(every)
        assert (some[0], some[-1]) == (every[0], every[-1])
        assert min(value for _, value in some) == min(value for _, value in every)
        assert max(value for _, value in some) == max(value for _, value in every)
    assert len(kept) < len(points)


@needs_browser
def test_points_that_are_far_apart_are_all_drawn(shown: Tab) -> None:
    """A zoom shows those that a pixel had covered, and one on either side of the part."""
    end = shown.run("data.end")
    points = [(at * end // 20, at % 3) for at in range(20)]
    assert shown.run(f"pointsInSight({json.dumps(points)}).length") == len(points)

    shown.run(f"look({end // 4 + 1}, {end // 2 - 1})")
    inside = [at for at, _ in points if end // 4 < at < end // 2]
    kept = [at for at, _ in shown.run(f"pointsInSight({json.dumps(points)})")]
    assert kept[1:-1] == inside
    assert kept[0] <= end // 4
    assert kept[-1] >= end // 2


# --- paper -----------------------------------------------------------------------------


def pages_of(paper: bytes) -> int:
    """How many pages a PDF has."""
    return paper.count(b"/Type /Page\n")


@needs_browser
def test_the_charts_begin_on_the_first_page_of_paper(shown: Tab) -> None:
    """They are fitted to its width; afterwards they are as before."""
    before = shown.run("pane.innerHTML")

    paper = b64decode(shown.call("Page.printToPDF")["data"])

    assert pages_of(paper) == 1
    assert shown.run("pane.innerHTML") == before
    assert not shown.run("pane.classList.contains('paper')")


@needs_browser
def test_a_picture_that_stays_in_the_flow_has_a_page_of_its_own(shown: Tab) -> None:
    """Without the style for paper there are two: the test above can fail."""
    shown.run("addEventListener('beforeprint', () => pane.classList.remove('paper'))")
    shown.run("addEventListener('beforeprint', () => { pane.style.paddingTop = '300px'; })")

    assert pages_of(b64decode(shown.call("Page.printToPDF")["data"])) == 2
