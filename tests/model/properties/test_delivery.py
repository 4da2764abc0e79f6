"""The judges of messages see each thing that can go wrong, and nothing where nothing has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee, Semantics
from watchkeeper.model.properties.delivery import DeliveryJudge
from watchkeeper.model.properties.starvation import PunctualityJudge, StarvationJudge
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.paths import offset, owner
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

CLICKS = Partition("clicks", "0-0")
SECOND_US = 1_000_000
Step = Callable[[], Event]


def event(at_s: float, kind: str, node: str = "", **detail: Any) -> Event:
    """An event of a trace that is about the one partition of the one group."""
    at_us = int(at_s * SECOND_US)
    group = "group" if node.startswith("c") else ""
    return Event(0, at_us, node, kind, 0, group, *CLICKS, 0, detail)


def sent(at_s: float, first: int, end: int, outcome: str = "accepted") -> Event:
    return event(at_s, EventKind.SENT, "p", producer="p", first=first, end=end, outcome=outcome)


def stored(at_s: float, first: int, end: int) -> Event:
    return event(at_s, EventKind.STORED, "b0", ranges=[["p", first, end, first * 10, end * 10]])


def consumed(at_s: float, first: int, end: int, node: str = "c0", stream: int = 0) -> Event:
    message_range = ["p", first, end, first * 10, end * 10]
    return event(at_s, EventKind.CONSUMED, node, ranges=[message_range], stream=stream)


def committed(at_s: float, number: int | str) -> Event:
    did = [["changed", offset("group", CLICKS), 0, str(number)]]
    return event(at_s, EventKind.APPLIED, "", by="c0", did=did)


def claimed(at_s: float, word: str = "created") -> Event:
    return event(
        at_s, EventKind.APPLIED, "", by="c0", did=[[word, owner("group", CLICKS), 7, "c0-0"]]
    )


def fetching(at_s: float, does: str, node: str = "c0", stream: int = 0) -> Event:
    return event(at_s, EventKind.FETCHING, node, does=does, at=0, stream=stream)


def judged(semantics: Semantics, *events: Event, **limits: int) -> dict[str, Finding]:
    """What the judge of delivery says of these events."""
    judge = DeliveryJudge({"group": DeliveryGuarantee(semantics, ("clicks",), **limits)})
    for event in events:
        judge.take(event)
    return {finding.claim.name: finding for finding in judge.findings()}


# --- delivery --------------------------------------------------------------------------

IN_ORDER = (sent(0, 0, 10), stored(0, 0, 10), consumed(1, 0, 10), committed(2, 100))
LOST = (sent(0, 0, 10), stored(0, 0, 10), consumed(1, 4, 10))
NEVER_STORED = (sent(0, 0, 12), stored(0, 0, 10), consumed(1, 0, 10))
REPEATED = (*IN_ORDER, consumed(3, 7, 10, "c1"))


@pytest.mark.parametrize(
    ("semantics", "held"),
    [
        ("at most once", {"in order", "lost", "never stored"}),
        ("at least once", {"in order", "repeated"}),
        ("exactly once", {"in order"}),
        ("measured", {"in order", "lost", "never stored", "repeated"}),
    ],
)
def test_each_promise_allows_what_it_says(semantics: Semantics, held: set[str]) -> None:
    """At most once may lose, at least once may repeat, exactly once may do neither."""
    runs = {
        "in order": IN_ORDER,
        "lost": LOST,
        "never stored": NEVER_STORED,
        "repeated": REPEATED,
    }
    found = {name: judged(semantics, *run)["delivery to group"] for name, run in runs.items()}

    assert {name for name, finding in found.items() if finding.verdict is Verdict.HOLDS} == held
    assert "4 lost (0 never stored, 4 passed by in clicks/0-0)" in found["lost"].evidence
    assert "2 lost (2 never stored, 0 passed by)" in found["never stored"].evidence
    assert "3 handed on again in clicks/0-0" in found["repeated"].evidence


def test_a_promise_may_bear_limits_of_its_own() -> None:
    """Measured with bounds: so many and no more."""
    assert judged("measured", *LOST, most_lost=4)["delivery to group"].verdict is Verdict.HOLDS
    assert judged("measured", *LOST, most_lost=3)["delivery to group"].verdict is Verdict.VIOLATED
    within = judged("exactly once", *REPEATED, most_repeated=3)["delivery to group"]
    assert within.verdict is Verdict.HOLDS


def test_a_refused_message_is_not_lost() -> None:
    """The application got an error; and of what may have been served it knows nothing."""
    run = (*IN_ORDER, sent(4, 10, 20, "refused"), sent(4, 20, 30, "unknown"), sent(4, 10, 12))
    run = (*run, stored(5, 10, 12))
    limited = judged("exactly once", *run, most_refused=7)["delivery to group"]

    assert judged("exactly once", *run)["delivery to group"].verdict is Verdict.HOLDS
    assert limited.verdict is Verdict.VIOLATED
    assert "8 refused" in limited.evidence


def test_without_messages_nothing_is_known() -> None:
    """No verdict comes from an empty trace."""
    findings = judged("exactly once")

    assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}


def test_what_is_not_read_yet_is_not_lost() -> None:
    """A commit says that the group will not come back; a log that goes on says nothing."""
    unread = judged("at least once", *IN_ORDER, sent(3, 10, 15), stored(3, 10, 15))
    passed = judged("at least once", sent(0, 0, 9), stored(0, 0, 9), committed(2, 90))

    assert unread["delivery to group"].verdict is Verdict.HOLDS
    assert "5 not yet read" in unread["delivery to group"].evidence
    assert passed["delivery to group"].verdict is Verdict.VIOLATED


# --- order and commits -----------------------------------------------------------------


def test_messages_come_in_the_order_they_were_sent() -> None:
    """A repeat is no disorder; a message that comes late for the first time is."""
    in_order = judged("measured", *REPEATED)
    late = judged("measured", stored(0, 0, 10), consumed(1, 5, 10), consumed(2, 0, 5))

    assert in_order["order"].verdict is Verdict.HOLDS
    assert late["order"].verdict is Verdict.VIOLATED
    assert late["order"].at_us == 2 * SECOND_US


@pytest.mark.parametrize("number", [-1, 110, "9223372036854775807", "--5", "", "²"])
def test_a_commit_that_nothing_was_handed_on_for_is_seen(number: int | str) -> None:
    """Minus one, a marker for the latest, or more than there is."""
    run = (*IN_ORDER[:3], committed(2, number))

    finding = judged("measured", *run)["sane commits"]

    assert finding.verdict is Verdict.VIOLATED
    assert f"committed {number}" in finding.evidence


@pytest.mark.parametrize(
    ("end", "verdict"), [(50, Verdict.VIOLATED), (70, Verdict.HOLDS), (90, Verdict.HOLDS)]
)
def test_before_anything_is_handed_on_a_place_lies_in_its_log(end: int, verdict: Verdict) -> None:
    """The group may have been there earlier; the log ends where its broker found that it does."""
    run = (stored(0, 0, 10), event(1, EventKind.LOG_OPENED, "b0", end=end), committed(2, 70))

    assert judged("measured", *run)["sane commits"].verdict is verdict
    assert judged("measured", *run[1:])["sane commits"].verdict is verdict


def test_a_commit_of_where_a_group_begins_is_sane() -> None:
    """It looked for the end of the log, and was handed nothing yet."""
    reset = event(1, EventKind.OFFSET_RESET, "c0", to=100, why="no offset")

    findings = judged("at least once", stored(0, 0, 10), reset, committed(2, 100))

    assert findings["sane commits"].verdict is Verdict.HOLDS
    assert "lost" not in findings["delivery to group"].evidence


# --- waiting ---------------------------------------------------------------------------


def opened(at_s: float, end: int) -> Event:
    return event(at_s, EventKind.LOG_OPENED, "b0", start=0, end=end, clean=False)


def hosting(at_s: float, does: str, node: str = "b0") -> Event:
    return event(at_s, EventKind.HOSTING, node, does=does)


def starved(*events: Event, end_s: float = 100) -> Finding:
    """What is said of waits of more than ten seconds."""
    judge = StarvationJudge(10 * SECOND_US)
    for event in events:
        judge.take(event)
    return judge.finding(int(end_s * SECOND_US))


CLAIMED = (claimed(1), fetching(1, "begins"))
OWNED = (stored(0, 0, 10), *CLAIMED)


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ((*OWNED, consumed(2, 0, 10)), Verdict.HOLDS),
        ((*OWNED, consumed(2, 0, 5)), Verdict.VIOLATED),
        ((*OWNED, consumed(9, 0, 5), consumed(18, 5, 10)), Verdict.HOLDS),
        ((*OWNED, consumed(2, 0, 5, stream=1)), Verdict.VIOLATED),
        ((*OWNED, fetching(10, "ceases")), Verdict.VIOLATED),
        ((*OWNED, fetching(10, "ceases"), claimed(10, "deleted")), Verdict.HOLDS),
        ((*OWNED, hosting(5, "ceases")), Verdict.HOLDS),
        ((*OWNED, hosting(5, "ceases"), hosting(60, "begins")), Verdict.VIOLATED),
        (
            (hosting(0, "begins"), hosting(0, "begins", "b1"), *OWNED, hosting(5, "ceases")),
            Verdict.VIOLATED,
        ),
        ((*OWNED, consumed(2, 0, 5), opened(3, 50)), Verdict.HOLDS),
        ((*OWNED, consumed(2, 0, 5), opened(3, 51)), Verdict.VIOLATED),
        ((opened(0, 10), *CLAIMED), Verdict.VIOLATED),
        ((*OWNED, event(2, EventKind.CONSUMED, "c0", ranges=[], stream=0)), Verdict.VIOLATED),
        ((*OWNED, event(2, EventKind.STORED, "b0", ranges=[])), Verdict.VIOLATED),
        ((*CLAIMED, stored(50, 0, 1)), Verdict.VIOLATED),
        ((*CLAIMED, stored(95, 0, 1)), Verdict.HOLDS),
        (CLAIMED, Verdict.UNKNOWN),
        ((stored(0, 0, 10), fetching(1, "begins")), Verdict.UNKNOWN),
        (
            (*OWNED, event(2, EventKind.OFFSET_RESET, "c0", to=100, why="no offset")),
            Verdict.HOLDS,
        ),
    ],
)
def test_a_wait_counts_while_there_is_something_to_read(
    events: tuple[Event, ...], verdict: Verdict
) -> None:
    """By the owner's own stream, while the broker serves it, and only while it is owned."""
    assert starved(*events).verdict is verdict


def test_the_first_moment_of_starving_is_named() -> None:
    """It is when the bound was passed, not when the wait began or ended."""
    finding = starved(*OWNED)

    assert finding.at_us == 11 * SECOND_US
    assert "stream 0 of c0 was handed nothing" in finding.evidence


def test_the_wait_that_was_too_long_first_is_named_not_the_one_that_ended_first() -> None:
    """One begins, another begins and ends, and the first goes on."""
    claimed = event(5, EventKind.APPLIED, did=[["created", owner("more", CLICKS), 7, "c1-0"]])
    gone = event(30, EventKind.APPLIED, did=[["deleted", owner("more", CLICKS), 7]])

    assert starved(*OWNED, claimed, gone).at_us == 11 * SECOND_US
    assert "(2 times in all)" in starved(*OWNED, claimed, gone).evidence


def kept(*events: Event) -> Finding:
    """What is said of messages that are to be stored within a second."""
    judge = PunctualityJudge(SECOND_US)
    for event in events:
        judge.take(event)
    return judge.finding()


def test_what_was_accepted_is_stored_in_time() -> None:
    """A message that stays in a queue for too long is seen when it comes, if it does."""
    accepted = (sent(0, 0, 5), sent(1, 5, 9))

    assert kept(*accepted, stored(1, 0, 9)).verdict is Verdict.HOLDS
    assert kept(*accepted, stored(1.5, 0, 9)).verdict is Verdict.VIOLATED
    assert kept(sent(0, 0, 5, "refused"), stored(9, 0, 5)).verdict is Verdict.UNKNOWN
    assert "1.50 s later" in kept(sent(0, 0, 5), stored(1.5, 0, 9)).evidence


def test_each_message_that_was_accepted_is_to_be_stored_in_time() -> None:
    """Not only the first of those that were accepted together."""
    parted = kept(sent(0, 0, 9), stored(0.5, 0, 3), stored(2, 5, 9), stored(3, 3, 5))

    assert parted.verdict is Verdict.VIOLATED
    assert "message 5 of p" in parted.evidence
    assert "(2 times in all)" in parted.evidence
    assert kept(sent(0, 0, 9), stored(0.5, 0, 3), stored(1, 3, 9)).verdict is Verdict.HOLDS


def test_what_is_stored_before_anybody_hears_of_it_has_not_waited() -> None:
    """An answer takes time; and what is stored again later was there already."""
    early = (stored(1, 0, 6), sent(2, 0, 9))

    assert kept(*early).verdict is Verdict.HOLDS
    assert kept(*early, stored(9, 0, 6)).verdict is Verdict.HOLDS
    assert "message 6 of p" in kept(*early, stored(9, 0, 9)).evidence


def test_the_message_that_was_late_first_is_named() -> None:
    """Though one that was accepted later was stored before it, and late as well."""
    finding = kept(sent(1, 0, 5), sent(2, 5, 9), stored(8, 5, 9), stored(9, 0, 5))

    assert finding.at_us == 2 * SECOND_US
    assert "message 0 of p" in finding.evidence
