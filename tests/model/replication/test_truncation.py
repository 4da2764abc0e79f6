"""Where a follower cuts its log, by each rule, for the cases that the rules were made for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.model.replication.replica_log import (
    NO_EPOCH,
    Record,
    ReplicaLog,
    common_end,
    end_of_epoch,
    last_epoch,
)
from watchkeeper.model.replication.truncation import (
    FETCH_EPOCHS,
    HIGH_WATERMARK,
    KIP_101,
    KIP_279,
    KIP_320,
    RULES,
    TruncationRule,
)

LETTERS = "abcdefgh"


def log(*epochs: int, numbers: str = "") -> ReplicaLog:
    """A log of records with these epochs; a letter each makes records of two logs differ."""
    pairs = zip(epochs, numbers or LETTERS, strict=False)
    return tuple(Record(epoch, ord(letter)) for epoch, letter in pairs)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, 2), (1, 2), (2, 3), (4, 5), (5, None), (NO_EPOCH, 0)],
)
def test_an_epoch_ends_where_a_greater_one_begins(epoch: int, end: int | None) -> None:
    """The last one at the end of the log; of a greater one nothing is known."""
    assert end_of_epoch(log(0, 0, 2, 4, 4), epoch) == end


def test_an_empty_log_knows_no_epoch() -> None:
    assert last_epoch(()) == NO_EPOCH
    assert end_of_epoch((), 0) is None


@pytest.mark.parametrize(
    ("rule", "cut"),
    [(HIGH_WATERMARK, 0), (KIP_101, 1), (KIP_279, 1), (FETCH_EPOCHS, 1), (KIP_320, 1)],
)
def test_a_committed_record_above_the_high_watermark(rule: TruncationRule, cut: int) -> None:
    """The follower has it, and does not know yet that it is committed (KAFKA-1211)."""
    both = log(0)

    assert rule.cut_at(both, both, 0) == cut


@pytest.mark.parametrize(
    ("rule", "cut"),
    [(HIGH_WATERMARK, 2), (KIP_101, 1), (KIP_279, 1), (FETCH_EPOCHS, 1), (KIP_320, 1)],
)
def test_another_record_at_the_offset_of_a_committed_one(rule: TruncationRule, cut: int) -> None:
    """Both lost power; the one with the shorter log leads and appends (KIP-101, second case)."""
    follower, leader = log(0, 0, numbers="ab"), log(0, 1, numbers="ac")

    assert rule.cut_at(follower, leader, 2) == cut


@pytest.mark.parametrize(("rule", "cut"), [(KIP_101, 3), (KIP_279, 1), (KIP_320, 1)])
def test_an_epoch_that_the_leader_has_never_heard_of(rule: TruncationRule, cut: int) -> None:
    """Two fast changes of leader: the end of an older epoch coincides (KAFKA-6361)."""
    follower = log(0, 1, 1, numbers="abc")
    leader = log(0, 0, 0, 2, numbers="adef")

    assert rule.cut_at(follower, leader, 1) == cut


def test_a_leader_that_knows_only_older_epochs_says_nothing() -> None:
    """Then KIP-101 falls back to the high watermark."""
    assert KIP_101.cut_at(log(0, 3), log(0), 1) == 1
    assert KIP_101.cut_at(log(0, 3), (), 0) == 0


logs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5)).map(lambda pair: Record(*pair)), max_size=5
).map(lambda records: tuple(sorted(records, key=lambda record: record.epoch)))


@given(logs, logs)
def test_what_is_left_of_a_log_is_never_longer_than_it_was(
    follower: ReplicaLog, leader: ReplicaLog
) -> None:
    """By no rule, for any two logs."""
    for rule in RULES:
        for high_watermark in range(len(follower) + 1):
            assert 0 <= rule.cut_at(follower, leader, high_watermark) <= len(follower)


@given(logs, logs)
def test_both_logs_have_the_last_record_before_the_common_end(
    follower: ReplicaLog, leader: ReplicaLog
) -> None:
    """And differ in every later one."""
    end = common_end(follower, leader)

    assert follower[max(end - 1, 0) : end] == leader[max(end - 1, 0) : end]
    shared = range(end, min(len(follower), len(leader)))
    assert all(follower[at] != leader[at] for at in shared)
