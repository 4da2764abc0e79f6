"""Members of every variant that come and go: what they own, where they begin, what they say.

Classes: `members-<variant>`. Nothing in these runs breaks a connection; members join, leave,
crash and return, topics and partitions are added, brokers leave and return, and the links of some
members are slow. At the end each member has to fetch what a second, slow implementation deals
to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.mutation.accounts import differences
from bench.regression_classes.drawn_group import Drawn, change, drawn_group
from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import Fields, ms, run
from bench.support.dealt import Dealt, Place, dealt

from watchkeeper import Result
from watchkeeper.model.group.variants import VARIANTS, Unit
from watchkeeper.model.properties.history import History
from watchkeeper.model.trace.kinds import EventKind

FIRST_MS = 9_000
"""When the first of the changes takes place: the group has come to rest by then."""


def draw_members(dice: Random, name: str) -> Outcome:
    """Draw a group of one variant, and changes of it and of its cluster."""
    drawn = drawn_group(dice, VARIANTS[name])
    for at in range(len(drawn.members)):
        if dice.random() < 0.25:
            by = ms(dice.randrange(5, 40))
            entry = {"at": "500ms", "delay": f"billing/{at}", "by": by, "for": "30s"}
            drawn.timeline.append(entry)
    at_ms = FIRST_MS
    for _ in range(dice.randint(2, 4)):
        drawn.timeline += change(dice, drawn, at_ms)
        at_ms += dice.choice((1_500, 6_000, 9_000))
    config = {
        "zookeeper.session.timeout.ms": dice.choice((2_000, 4_000)),
        "rebalance.backoff.ms": dice.choice((500, 1_000)),
        "rebalance.max.retries": dice.choice((8, 12)),
        "auto.commit.interval.ms": dice.choice((1_000, 4_000, 60_000)),
        "auto.offset.reset": dice.choice(("smallest", "largest")),
        **drawn.strategy_setting,
    }
    fields: Fields = {
        "clusters": {
            "main": {
                "layout": drawn.layout,
                "zookeeper": {"servers": dice.choice((1, 1, 3))},
                "brokers": drawn.brokers,
                "topics": {name: {drawn.each: count} for name, count in drawn.at_first.items()},
            }
        },
        "groups": {
            "billing": {
                "consumers": drawn.members,
                "apart": ms(dice.choice((0, 20, 400, 1_500))),
                "config": config,
            }
        },
        "timeline": drawn.timeline,
        "settle": "20s",
    }
    result = run(dice, fields, name)
    return Outcome(tuple(members_wrong(result, drawn)), len(drawn.timeline))


# --- what is wrong ----------------------------------------------------------------------

OF_THE_PAGES = frozenset(
    {"full cover", "single ownership", "truthful registry", "balance", "progress", "agreed view"}
)
MAY_VIOLATE = {"documented": OF_THE_PAGES, "documented_ceil": OF_THE_PAGES}
"""What the members of a variant may violate in such a run."""
SAID_BY_THE_PAGES = frozenset({"share", "commit"})
MAY_DIFFER = {"documented": SAID_BY_THE_PAGES, "documented_ceil": SAID_BY_THE_PAGES}
"""What the members of a variant may say that the registry does not, in a few of these runs."""


def members_wrong(result: Result, drawn: Drawn) -> Iterator[str]:
    """Violations, accounts that differ, and shares that are not what is dealt."""
    if drawn.is_refused:
        yield from _refusal_wrong(result)
        return
    name = drawn.variant.name
    for event in result.trace.of_kind(EventKind.TURN_FAILED):
        yield f"a turn of {event.node} fails: {event.detail['error']}"
    for violated in result.violated:
        if violated not in MAY_VIOLATE.get(name, frozenset()):
            yield f"{violated}: {result.judgement.finding(violated).evidence}"
    for account in differences(result.plan, result.trace):
        if account not in MAY_DIFFER.get(name, frozenset()):
            yield f"members' accounts differ: {account}"
    if not result.violated:
        yield from shares_wrong(result, drawn)


def _refusal_wrong(result: Result) -> Iterator[str]:
    """What is wrong where no assignment is possible: no member may fetch."""
    failed = list(result.trace.of_kind(EventKind.REBALANCE_FAILED))
    if not any("round robin needs" in event.detail["why"] for event in failed):
        yield "the members do not say that round robin needs the same streams on every topic"
    for event in result.trace.of_kind(EventKind.FETCHING):
        yield f"{event.node} fetches {event.place}, which cannot be dealt"


def shares_wrong(result: Result, drawn: Drawn) -> Iterator[str]:
    """Streams that do not fetch at the end what they are dealt."""
    history = History(result.plan)
    for event in result.trace:
        if event.kind in history.handlers:
            history.handlers[event.kind](event)
    ids = {
        node: path.rpartition("/")[2]
        for node in sorted(drawn.running)
        for path in history.registered.get(node, ())
    }
    for node in sorted(drawn.running - ids.keys()):
        yield f"{node} is not registered"
    wanted = _dealt(drawn, ids)
    fetched: Dealt = {}
    for node, name in ids.items():
        for partition, number in history.node(node).fetching.items():
            stream = name if drawn.variant.unit is Unit.CONSUMER else f"{name}-{number}"
            place: Place = (partition.topic, partition.name)
            fetched.setdefault(stream, set()).add(place)
    for stream in sorted(wanted.keys() | fetched.keys()):
        has, due = fetched.get(stream, set()), wanted.get(stream, set())
        if has != due:
            yield f"{stream} fetches {sorted(has)}, not {sorted(due)}"


def _dealt(drawn: Drawn, ids: dict[str, str]) -> Dealt:
    """What each stream of the members that run is dealt."""
    partitions = {topic: drawn.partitions(topic) for topic in sorted(drawn.topics)}
    streams: dict[str, list[str]] = {topic: [] for topic in partitions}
    for node, name in ids.items():
        for topic in partitions:
            count = drawn.streams(int(node.rpartition("/")[2]), topic)
            if drawn.variant.unit is Unit.CONSUMER:
                streams[topic] += [name] * (count > 0)
            else:
                streams[topic] += [f"{name}-{at}" for at in range(count)]
    wanted = {topic: sorted(names) for topic, names in streams.items() if names}
    there = {topic: partitions[topic] for topic in wanted}
    return dealt(drawn.variant.assignor or drawn.strategy, there, wanted)


def _class_of(name: str) -> RegressionClass:
    return RegressionClass(
        f"members-{name}",
        f"members of {name} come and go: each fetches what it is dealt, and says what is so",
        lambda dice: draw_members(dice, name),
    )


MEMBERS = tuple(map(_class_of, VARIANTS))
