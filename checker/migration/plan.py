"""The plan of a migration as text: what to set, when to go on, and what a search says of it."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.checker.migration.group import Bounds
from watchkeeper.checker.migration.search import Result, search
from watchkeeper.model.offset_manager.migration import DIRECTIONS, NAMES, Order, Store, Wait
from watchkeeper.model.properties.verdicts import Verdict, counted

SEARCHES = (
    (
        "members leave in order; the operator may stop and turn back anywhere",
        Bounds(kills=0),
    ),
    ("beside that, one is killed, perhaps between the two writes of a commit", Bounds(kills=1)),
)
"""What is allowed, and the bounds of the search."""


def plan(to: Store) -> str:
    """Return the plan of a migration as text."""
    order = DIRECTIONS[to]
    return "\n".join((*_steps(order), "", *_checked(order)))


def _steps(order: Order) -> Iterator[str]:
    yield f"Offsets move {order.name}, by {counted(len(order.stages) - 1, 'rolling bounce')}."
    for number, stage in enumerate(order.stages[1:], 1):
        yield ""
        yield f"{number}. In each member, one after the other: end it, set, and start it again:"
        yield from (f"       {line}" for line in stage.settings.lines)
        if stage.wait is Wait.NOT_BEHIND:
            after = order.stages[number + 1].settings.storage
            other = next(store for store in Store if store is not after)
            yield "   Go on when each member has these settings, and no offset in"
            yield f"   {NAMES[after]} is smaller than that in {NAMES[other]}:"
            yield f"       watchkeeper migrate-offsets ZOOKEEPER --to {after} --group GROUP"
            yield from _hints(after)


def _hints(after: Store) -> Iterator[str]:
    if after is Store.ZOOKEEPER:
        yield "   Kafka 0.8.2.2 writes nothing to ZooKeeper of a partition without new messages."
        yield "   For such a partition, end all members and use --copy."
    else:
        yield "   Each member commits all its partitions after auto.commit.interval.ms."


def _checked(order: Order) -> Iterator[str]:
    yield "Does a member begin below what the group has committed?"
    for words, bounds in SEARCHES:
        result = search(order, bounds)
        yield f"   {words}:"
        yield f"       {_answer(result)}"
        yield from (f"       {number:2}  {step}" for number, step in enumerate(result.steps, 1))


def _answer(result: Result) -> str:
    if result.verdict is Verdict.VIOLATED:
        return f"yes, after {counted(len(result.steps), 'step')}; it reads messages again"
    word = "no" if result.verdict is Verdict.HOLDS else "unknown"
    return f"{word}, in {result.states:,} states"
