"""Each mutant of the log violates the invariant that its row names, in a short history.

The same history with the correct classes violates none.
"""

from __future__ import annotations

from typing import get_args

import pytest

from tests import HOME
from tests.mutants.invariants import INVARIANTS, Invariant, broken_after_crash
from tests.mutants.log import LOG_MUTANTS, LogMutant
from tests.support.log.histories import HISTORIES, Broken
from tests.support.log.messages import FORTY_TWO, TEST
from watchkeeper.model.log.log_manager import LogManager

PAGE = HOME / "docs" / "explanation" / "the-log.md"

# --- what is caught --------------------------------------------------------------------


@pytest.mark.parametrize("mutant", LOG_MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_mutant_violates_its_invariant(mutant: LogMutant) -> None:
    """That invariant, and perhaps others as a consequence."""
    assert mutant.guarantee in HISTORIES[mutant.name](mutant.logs)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_sound_log_breaks_none(name: str) -> None:
    """In the same history."""
    assert HISTORIES[name](LogManager) == ()


def test_every_mutant_and_every_invariant_is_documented() -> None:
    """A sentence for each, on the page about the log, too; a history for each mutant."""
    page = PAGE.read_text()
    for name, meaning in INVARIANTS.items():
        assert f"| {name} | {meaning} |" in page
    for mutant in LOG_MUTANTS.values():
        assert f"| `{mutant.name}` | {mutant.origin} | {mutant.guarantee} |" in page
    assert list(LOG_MUTANTS) == list(HISTORIES)
    assert set(INVARIANTS) == set(get_args(Invariant))
    for mutant in LOG_MUTANTS.values():
        assert mutant.about.endswith(".")
        assert "KAFKA-" in mutant.origin


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
