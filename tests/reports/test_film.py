"""Ownership as a film: in the page, and as a GIF."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.support.browser import needs_browser, rendered
from watchkeeper import simulate
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.ownership.gif import FRAMES, WIDTH_PIXELS, write_ownership_gif
from watchkeeper.reports.ownership.html import write_ownership_html

RUNS_OUT = "goTo(data.end);"
SHOWS_16_S = "play(true); play(false); goTo(16e6);"


@pytest.fixture(scope="module")
def trace() -> Trace:
    """A run in which a consumer is killed at 14 s."""
    return simulate("consumer-crash").trace


@needs_browser
def test_a_moment_in_a_browser(trace: Trace, tmp_path: Path) -> None:
    """What is after it is covered, with the time and the last action."""
    page = tmp_path / write_ownership_html(trace, tmp_path)
    text = rendered(page, then=SHOWS_16_S)
    [veil] = [part for part in text.split("<div") if part.startswith(' class="veil"')]
    assert "hidden" not in veil
    assert "16.00 s · crash billing/1" in veil


@needs_browser
def test_the_end_in_a_browser(trace: Trace, tmp_path: Path) -> None:
    """Nothing is covered any more."""
    page = tmp_path / write_ownership_html(trace, tmp_path)
    text = rendered(page, then=SHOWS_16_S + RUNS_OUT)
    [veil] = [part for part in text.split("<div") if part.startswith(' class="veil"')]
    assert "hidden" in veil


def test_the_gif(trace: Trace, tmp_path: Path) -> None:
    """Each frame uncovers more than the one before; the last one is the whole picture."""
    film = Image.open(tmp_path / write_ownership_gif(trace, tmp_path))
    assert film.n_frames == FRAMES
    assert film.width == WIDTH_PIXELS
    coloured = []
    for number in (0, FRAMES // 2, FRAMES - 1):
        film.seek(number)
        pixels = film.convert("HSV").getchannel("S").histogram()
        coloured.append(sum(pixels[100:]))
    assert coloured == sorted(coloured)
    assert coloured[0] < coloured[1] / 2 < coloured[2] / 2
