"""The page of space and time as it opens: servers in sight, words apart, numbers that differ."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Row, Trace
from watchkeeper.reports import write_spacetime_html
from watchkeeper.reports.spacetime.swimlanes import lanes

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


def started(consumers: int, brokers: int) -> Trace:
    """A run in which so many processes start and connect."""
    rows: list[Row] = []
    for at in range(consumers + brokers):
        group = "g" if at < consumers else ""
        name = f"g/{at}" if group else f"broker/{at}"
        connected = {"at": "zookeeper/1", "new": True}
        rows.append((at, name, EventKind.STARTED, 0, group, "", "", 0, {}))
        rows.append((at, name, EventKind.CONNECTED, at + 1, group, "", "", 0, connected))
    return Trace(Header("started", "hardened", "sim", 0), rows)


@pytest.mark.parametrize(("consumers", "brokers"), [(30, 3), (2, 40)])
def test_servers_are_not_behind_many_lanes(consumers: int, brokers: int) -> None:
    """The side with fewer lanes is on the left, so that the servers are in sight."""
    kinds = [lane.kind for lane in lanes(started(consumers, brokers))]

    assert kinds.index("server") == min(consumers, brokers)
    assert len(kinds) == consumers + brokers + 1


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a herd, as a browser has drawn it."""
    folder = tmp_path_factory.mktemp("herd")
    write_spacetime_html(simulate("mass-start-herd", variant="hardened", seed=0).trace, folder)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
    flags += ["--disable-background-networking", f"--user-data-dir={folder}/browser"]
    command = [BROWSER or "", *flags, "--dump-dom", (folder / "spacetime.html").as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no browser")


@needs_browser
def test_a_page_opens_where_something_is_to_be_seen(opened: str) -> None:
    """At the first rebalance, with operations on the screen."""
    assert "Opened at the first rebalance" in opened
    assert re.search(r">rebalance<", opened)
    assert opened.count("<path") > 100


@needs_browser
def test_neighbouring_numbers_differ(opened: str) -> None:
    """The axis shows as many digits as its numbers need."""
    numbers = re.findall(r">(\+[0-9.]+ (?:µs|ms))<", opened)

    assert len(numbers) > 10
    assert all(number != following for number, following in pairwise(numbers))


@needs_browser
def test_words_do_not_stand_on_words(opened: str) -> None:
    """No two texts of operations begin or end at one place and nearly one height."""
    pattern = r'<text x="([-0-9.]+)" y="([-0-9.]+)" text-anchor="(\w+)" class="halo item"'
    found = [(float(x), float(y), anchor) for x, y, anchor in re.findall(pattern, opened)]

    assert len(found) > 20
    for at, (x, y, anchor) in enumerate(found):
        for other_x, other_y, other_anchor in found[at + 1 :]:
            together = anchor == other_anchor and abs(x - other_x) < 1
            assert not (together and abs(y - other_y) < 10.9)


def test_the_page_is_the_same_each_time(tmp_path: Path) -> None:
    """The same trace gives the same bytes."""
    trace = started(3, 3)
    written = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_spacetime_html(trace, tmp_path / name)
        written.add((tmp_path / name / "spacetime.html").read_bytes())

    assert len(written) == 1
