"""The ledger of messages says of millions what counting one by one would say of a few."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.counts import DeliveryCounts
from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.model.delivery.ledger import Ledger, MessageRange

CLICKS = (Partition("clicks", "0-0"), Partition("clicks", "1-0"))
ENTRY = 10
"""Bytes of an entry in these logs."""


# --- ranges ----------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=40)


@given(RANGES, st.integers(0, 60), st.integers(0, 20))
def test_ranges_are_a_set_of_numbers(
    added: list[tuple[int, int]], first: int, length: int
) -> None:
    """For any additions in any order, and any query."""
    ranges, numbers = IntervalSet(), set[int]()
    for begin, size in added:
        new = set(range(begin, begin + size)) - numbers
        assert ranges.add(begin, begin + size) == len(new)
        numbers |= new
    numbers_of_range = range(first, first + length)

    assert ranges.size == len(numbers)
    assert numbers_in(ranges) == sorted(numbers)
    gaps = ranges.missing(first, first + length)
    assert [number for begin, end in gaps for number in range(begin, end)] == sorted(
        set(numbers_of_range) - numbers
    )


@given(RANGES)
def test_ranges_neither_overlap_nor_touch(added: list[tuple[int, int]]) -> None:
    """So that there are never more of them than there are gaps."""
    ranges = list(IntervalSet((first, first + size) for first, size in added))

    assert all(end < following for (_, end), (following, _) in pairwise(ranges))
    assert all(first < end for first, end in ranges)


@given(RANGES, RANGES)
def test_a_difference_of_ranges_is_one_of_sets(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    """Numbers that are here and not there."""
    here, there = (
        IntervalSet((first, first + size) for first, size in pieces) for pieces in (some, others)
    )

    left = here.without(there)

    assert numbers_in(left) == sorted({*numbers_in(here)} - {*numbers_in(there)})
    assert left.size == len(numbers_in(left))


def numbers_in(ranges: IntervalSet) -> list[int]:
    """Each of them."""
    return [number for first, end in ranges for number in range(first, end)]


# --- against counting one by one -------------------------------------------------------


class Counted:
    """The same ledger, as a multiset: one message after the other."""

    def __init__(self) -> None:
        self.accepted: set[tuple[str, int]] = set()
        self.logs: dict[Partition, list[tuple[str, int]]] = {
            partition: [] for partition in CLICKS
        }
        self.seen: Counter[tuple[str, int]] = Counter()
        self.reached = dict.fromkeys(CLICKS, 0)

    def skipped(self) -> int:
        """In the log before the place that was reached, never consumed, nowhere to come."""
        to_come = {
            log for place in CLICKS for log in self.logs[place][self.reached[place] // ENTRY :]
        }
        return sum(
            len(
                {
                    log
                    for log in self.logs[place][: self.reached[place] // ENTRY]
                    if not self.seen[log] and log not in to_come
                }
            )
            for place in CLICKS
        )

    def unread(self) -> int:
        """In the log behind that place and never consumed."""
        return sum(
            len(
                {
                    log
                    for log in self.logs[place][self.reached[place] // ENTRY :]
                    if not self.seen[log]
                }
            )
            for place in CLICKS
        )

    def stored_twice(self) -> int:
        """How often a message was stored again."""
        stored = Counter(message for log in self.logs.values() for message in log)
        return sum(number - 1 for number in stored.values())


class Both:
    """A ledger and a multiset with the same input."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.counted = Counted()

    def send(self, producer: str, first: int, size: int, is_accepted: bool) -> None:
        outcome = "accepted" if is_accepted else "refused"
        self.ledger.send("clicks", producer, first, first + size, outcome)  # type: ignore[arg-type]
        if is_accepted:
            self.counted.accepted |= {(producer, number) for number in range(first, first + size)}

    def store(self, partition: Partition, producer: str, first: int, size: int) -> None:
        log = self.counted.logs[partition]
        at = len(log) * ENTRY
        message_range = MessageRange(producer, first, first + size, at, at + size * ENTRY)
        self.ledger.store(partition, message_range)
        log += [(producer, number) for number in range(first, first + size)]

    def consume(self, partition: Partition, begin: int, size: int) -> None:
        """Consume what lies in a part of the log, message by message or in ranges."""
        log = self.counted.logs[partition]
        for at, (producer, number) in list(enumerate(log))[begin : begin + size]:
            message_range = MessageRange(
                producer, number, number + 1, at * ENTRY, (at + 1) * ENTRY
            )
            again = self.ledger.consume("group", partition, message_range)
            assert again == min(1, self.counted.seen[producer, number])
            self.counted.seen[producer, number] += 1
            reached = self.counted.reached[partition]
            self.counted.reached[partition] = max(reached, (at + 1) * ENTRY)

    def cut(self, partition: Partition, at: int) -> None:
        self.ledger.cut(partition, at * ENTRY)
        del self.counted.logs[partition][at:]

    def commit(self, partition: Partition, at: int) -> None:
        offset = min(at, len(self.counted.logs[partition])) * ENTRY
        self.ledger.commit("group", partition, offset)
        self.counted.reached[partition] = max(self.counted.reached[partition], offset)


PRODUCERS = st.sampled_from(("p0", "p1"))
PLACES = st.sampled_from(CLICKS)
SMALL = st.integers(0, 8)
STEPS = st.one_of(
    st.tuples(st.just("send"), PRODUCERS, SMALL, SMALL, st.booleans()),
    st.tuples(st.just("store"), PLACES, PRODUCERS, SMALL, st.integers(1, 8)),
    st.tuples(st.just("consume"), PLACES, SMALL, SMALL),
    st.tuples(st.just("commit"), PLACES, st.integers(0, 20)),
    st.tuples(st.just("cut"), PLACES, st.integers(0, 20)),
)


@settings(max_examples=300)
@given(st.lists(STEPS, max_size=25))
def test_the_ledger_counts_as_a_multiset_does(steps: list[tuple[object, ...]]) -> None:
    """Messages that are lost, skipped, unread, stored twice, consumed twice: in any order."""
    both = Both()
    for name, *arguments in steps:
        getattr(both, str(name))(*arguments)
    counted = both.counted

    account = both.ledger.account("group", ["clicks"])

    stored = {message for log in counted.logs.values() for message in log}
    assert account.accepted == len(counted.accepted)
    assert account.never_stored == len(counted.accepted - stored - set(counted.seen))
    assert account.skipped == counted.skipped()
    assert account.unread == counted.unread()
    assert account.stored_twice == counted.stored_twice()
    assert account.consumed == len([message for message, times in counted.seen.items() if times])
    assert account.duplicated == sum(times - 1 for times in counted.seen.values() if times)


# --- by hand ---------------------------------------------------------------------------


def filled(*ranges: MessageRange) -> Ledger:
    """A ledger of one partition."""
    ledger = Ledger()
    for message_range in ranges:
        ledger.send(
            "clicks", message_range.producer, message_range.first, message_range.end, "accepted"
        )
        ledger.store(CLICKS[0], message_range)
    return ledger


def of(ledger: Ledger) -> DeliveryCounts:
    """What became of them in the one group."""
    return ledger.account("group", ["clicks"])


def test_millions_of_messages_are_a_few_ranges() -> None:
    """Two producers, by the hundred: what follows what it follows takes no room."""
    ledger = Ledger()
    for first in range(0, 1_000_000, 100):
        message_range = MessageRange(
            "p", first, first + 100, first * ENTRY, (first + 100) * ENTRY
        )
        ledger.store(CLICKS[0], message_range)
        ledger.consume("group", CLICKS[0], message_range)

    assert len(ledger.logs[CLICKS[0]]) == 1
    assert [*ledger.seen["group", "clicks"].of["p"]] == [(0, 1_000_000)]
    assert of(ledger).consumed == 1_000_000


def test_what_lies_before_the_first_place_of_a_group_is_not_due() -> None:
    """A group that begins at the end of a log has lost nothing of what was there."""
    ledger = filled(MessageRange("p", 0, 10, 0, 100))
    ledger.begin("group", CLICKS[0], 70)
    ledger.consume("group", CLICKS[0], MessageRange("p", 8, 9, 80, 90))

    assert (of(ledger).skipped, of(ledger).unread) == (1, 1)


def test_a_group_begins_once() -> None:
    """A member that looks for the end again, with a place of its own, skips what lies between."""
    ledger = filled(MessageRange("p", 0, 10, 0, 100))
    ledger.consume("group", CLICKS[0], MessageRange("p", 0, 2, 0, 20))
    ledger.begin("group", CLICKS[0], 80)
    ledger.consume("group", CLICKS[0], MessageRange("p", 8, 10, 80, 100))

    assert of(ledger).skipped == 6


def test_a_compressed_set_is_read_as_a_whole() -> None:
    """A place within it is the place before it: nothing of it counts as passed by."""
    ledger = filled(
        MessageRange("p", 0, 10, 0, 70, one_entry=True), MessageRange("p", 10, 20, 70, 140, True)
    )
    for number in range(4):
        ledger.consume("group", CLICKS[0], MessageRange("p", number, number + 1, 0, 0))

    assert (of(ledger).skipped, of(ledger).unread) == (0, 16)


def test_messages_of_other_topics_and_groups_are_not_counted() -> None:
    """An account is of one group, and of the topics that it wants."""
    ledger = filled(MessageRange("p", 0, 10, 0, 100))
    ledger.send("views", "p", 0, 5, "accepted")
    ledger.consume("others", CLICKS[0], MessageRange("p", 0, 10, 0, 100))

    assert of(ledger).accepted == of(ledger).unread == 10
    assert ledger.account("others", ["clicks", "views"]).never_stored == 5


@pytest.mark.parametrize(
    ("offset", "number"), [(-1, 5), (0, 5), (9, 5), (10, 6), (25, 7), (29, 7), (30, 8), (99, 8)]
)
def test_a_place_within_a_range_divides_its_messages(offset: int, number: int) -> None:
    """What does not end before the place lies behind it."""
    assert MessageRange("p", 5, 8, 0, 30).before(offset) == number
