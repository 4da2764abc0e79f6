"""Each planted mistake breaks the promise that is stated, in a history of a few steps.

The same history with the sound classes breaks none.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from model.log.flaws import LOG_PLANTS, Plant
from model.log.logs import Logs
from model.log.promises import PROMISES, Promise, broken_after_crash
from tests.log_histories import HISTORIES, Broken
from tests.log_messages import FORTY_TWO, TEST

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "the-log.md"

# --- what is caught --------------------------------------------------------------------


@pytest.mark.parametrize("plant", LOG_PLANTS.values(), ids=lambda plant: plant.name)
def test_a_planted_mistake_breaks_its_promise(plant: Plant) -> None:
    """That promise, and whatever else comes of it."""
    assert plant.promise in HISTORIES[plant.name](plant.logs)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_sound_log_breaks_none(name: str) -> None:
    """In the same history."""
    assert HISTORIES[name](Logs) == ()


def test_every_plant_and_every_promise_is_told_of() -> None:
    """A sentence for each, on the page about the log, too; a history for each plant."""
    page = PAGE.read_text()
    for name, meaning in PROMISES.items():
        assert f"| {name} | {meaning} |" in page
    for plant in LOG_PLANTS.values():
        assert f"| `{plant.name}` | {plant.origin} | {plant.promise} |" in page
    assert list(LOG_PLANTS) == list(HISTORIES)
    assert set(PROMISES) == set(get_args(Promise))
    for plant in LOG_PLANTS.values():
        assert plant.about.endswith(".")
        assert "KAFKA-" in plant.origin


# --- the judge -------------------------------------------------------------------------

ALL = TEST + FORTY_TWO + TEST


@pytest.mark.parametrize(
    ("flushed_end", "start", "found", "broken"),
    [
        (26, 0, ALL, ()),
        (26, 0, ALL[:26], ()),
        (26, 14, FORTY_TWO, ()),
        (0, 0, b"", ()),
        (26, 0, TEST, ("flushed is kept",)),
        (26, 14, b"", ("flushed is kept",)),
        (14, 0, TEST + FORTY_TWO[:-1], ("entries are whole",)),
        (14, 0, TEST * 2, ("read as appended",)),
        (14, 0, TEST + bytes(5), ("read as appended", "entries are whole")),
        (26, 0, bytes(26), ("flushed is kept", "read as appended", "entries are whole")),
        (40, 40, TEST, ("read as appended",)),
    ],
)
def test_what_was_found_after_a_crash_is_judged(
    flushed_end: int, start: int, found: bytes, broken: Broken
) -> None:
    """Three messages were appended, of 14, 12 and 14 bytes."""
    assert broken_after_crash(ALL, flushed_end, start, found) == broken
