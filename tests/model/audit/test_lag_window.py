"""The lag over a window of audits: a finding for each row of the table, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.audit.finding import FindingKind
from watchkeeper.model.audit.lag_window import LagSample, LagWindows, finding_of

KEY = ("billing", "clicks/0")


def window(*samples: tuple[int, int, int]) -> list[LagSample]:
    """Samples a second apart: offset, when it was written, lag."""
    return [LagSample(1_000 * at, *sample) for at, sample in enumerate(samples)]


CASES = {
    "the offset stays and is not written": (
        window((5, 1, 3), (5, 1, 3), (5, 1, 4)),
        FindingKind.STOPPED,
        "clicks/0: no offset was written, 5, and 4 wait behind it (3 audits in 2 s)",
    ),
    "the offset stays and is written": (
        window((5, 1, 3), (5, 2, 3), (5, 3, 3)),
        FindingKind.STALLED,
        "clicks/0: the same offset was written again, 5, and 3 wait behind it (3 audits in 2 s)",
    ),
    "the lag grows": (
        window((5, 1, 3), (6, 2, 3), (7, 3, 9)),
        FindingKind.FALLING_BEHIND,
        "clicks/0: it commits, and its lag has grown from 3 to 9 (3 audits in 2 s)",
    ),
    "the offset goes back": (
        window((5, 1, 0), (4, 2, 1), (9, 3, 0)),
        FindingKind.SET_BACK,
        "clicks/0: its offset went back from 5 to 4",
    ),
}
WELL = {
    "it reads all": window((5, 1, 0), (5, 1, 0), (5, 1, 0)),
    "it has read all at one moment": window((5, 1, 3), (8, 2, 0), (8, 2, 9)),
    "it keeps up": window((5, 1, 3), (6, 2, 3), (7, 3, 3)),
    "it catches up": window((5, 1, 9), (8, 2, 6), (9, 3, 7)),
    "it commits by a slow timer": window((5, 1, 3), (5, 1, 6), (11, 2, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_amiss(name: str) -> None:
    """The kind, and the sentence."""
    samples, kind, message = CASES[name]
    found = finding_of("clicks/0", samples)
    assert found is not None
    assert (found.kind, found.message, found.partition) == (kind, message, "clicks/0")


@pytest.mark.parametrize("name", WELL)
def test_what_is_well(name: str) -> None:
    """No finding."""
    assert finding_of("clicks/0", WELL[name]) is None


def test_a_window_has_to_be_full() -> None:
    """And begins anew where an audit did not learn the lag."""
    windows = LagWindows(3)
    stopped = window(*[(5, 1, 3)] * 6)
    assert windows.add({KEY: stopped[0]}) == windows.add({KEY: stopped[1]}) == {}
    assert windows.add({}) == {}
    assert windows.add({KEY: stopped[2]}) == windows.add({KEY: stopped[3]}) == {}
    assert windows.add({KEY: stopped[4]})[KEY].kind is FindingKind.STOPPED


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12))
def test_a_group_that_has_caught_up_and_never_goes_back(drawn: list[tuple[int, int]]) -> None:
    """Has no finding, whatever else its window shows."""
    offsets = sorted(offset for offset, _ in drawn)
    lags = [lag for _, lag in drawn]
    lags[len(lags) // 2] = 0
    samples = window(*((at, at, lag) for at, lag in zip(offsets, lags, strict=True)))
    assert finding_of("clicks/0", samples) is None
