"""The migration of a group's offsets: the plan, and whether it is safe to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from watchkeeper.checker.migration.group import Bounds
from watchkeeper.checker.migration.search import Result, search
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.registry_view import RegistryView, take
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.offset_manager.migration import DIRECTIONS, Order, Store, Wait
from watchkeeper.model.properties.verdicts import Verdict, counted
from watchkeeper.operate import offsets
from watchkeeper.operate.audit import Request, reader
from watchkeeper.real.net.group_offsets import OffsetsUnknown, committed_in_kafka

NAMES = {Store.ZOOKEEPER: "ZooKeeper", Store.KAFKA: "Kafka"}
SEARCHES = (
    (
        "members leave in order; the operator may stop and turn back anywhere",
        Bounds(kills=0),
    ),
    ("beside that, one is killed, perhaps between the two writes of a commit", Bounds(kills=1)),
)
"""What is allowed, and the bounds of the search."""


# --- the plan --------------------------------------------------------------------------


def check_plan_only(hosts: str | None, group: str | None, *, copy: bool, as_json: bool) -> None:
    """Refuse options that say nothing to a plan; raise Stop."""
    missing = "HOSTS" if hosts is None else "--group"
    given = {
        "HOSTS": hosts is not None,
        "--group": group is not None,
        "--copy": copy,
        "--json": as_json,
    }
    for name, is_given in given.items():
        if is_given:
            raise Stop(USAGE, f"{name} needs {missing} too; the plan alone needs only --to")


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


# --- the stores ------------------------------------------------------------------------


class Compared(NamedTuple):
    """The offsets of a group in both stores."""

    group: str
    to: Store
    stores: dict[Store, dict[Partition, int]]

    @property
    def behind(self) -> tuple[Partition, ...]:
        """The partitions of which the next store has a smaller offset, or none."""
        other = next(store for store in Store if store is not self.to)
        wanted = self.stores[self.to]
        return tuple(
            partition
            for partition, offset in sorted(self.stores[other].items())
            if wanted.get(partition, -1) < offset
        )

    def as_json(self) -> dict[str, Any]:
        """The comparison as a document."""
        partitions = sorted({*self.stores[Store.ZOOKEEPER], *self.stores[Store.KAFKA]})
        return {
            "group": self.group,
            "to": str(self.to),
            "offsets": {
                str(partition): {str(store): self.stores[store].get(partition) for store in Store}
                for partition in partitions
            },
            "behind": [str(partition) for partition in self.behind],
        }


def compare(request: Request, to: Store) -> Compared:
    """Read the offsets of a group from both stores; raise Stop unless all could be read."""
    assert request.group is not None, "offsets are a group's"
    with reader(request) as opened:
        snapshot = opened.read(request.group)
    census = take(snapshot)
    in_zookeeper = _in_zookeeper(census, snapshot, request.group)
    addresses = [f"{info.host}:{info.port}" for _, info in sorted(census.brokers.items())]
    partitions = {
        partition for topic in census.topics.values() for partition in topic.partitions()
    }
    named = [each for each in {*partitions, *in_zookeeper} if each.name.isdecimal()]
    if not named:
        raise Stop(USAGE, f"no topic of the layout of 0.8 is registered at {request.hosts}")
    try:
        in_kafka = committed_in_kafka(addresses, request.group, named)
    except OffsetsUnknown as why:
        raise Stop(UNKNOWN, str(why)) from None
    if not in_zookeeper and not in_kafka:
        raise Stop(USAGE, f"group {request.group} has no offsets in ZooKeeper or in Kafka")
    stores = {Store.ZOOKEEPER: in_zookeeper, Store.KAFKA: in_kafka}
    return Compared(request.group, to, stores)


def _in_zookeeper(census: RegistryView, snapshot: Snapshot, group: str) -> dict[Partition, int]:
    doubts = [each for each in snapshot.doubts(group) if each.startswith("/consumers/")]
    if doubts:
        raise Stop(UNKNOWN, f"not all offsets could be read: {doubts[0]}")
    found = census.groups.get(group)
    return {} if found is None else dict(found.offsets)


def show(compared: Compared) -> int:
    """Print a comparison; return the exit code."""
    behind = set(compared.behind)
    rows = [("partition", *(NAMES[store] for store in Store), "")]
    partitions = {*compared.stores[Store.ZOOKEEPER], *compared.stores[Store.KAFKA]}
    for partition in sorted(partitions):
        offsets_ = (compared.stores[store].get(partition) for store in Store)
        words = ("none" if offset is None else str(offset) for offset in offsets_)
        mark = f"{NAMES[compared.to]} is behind" if partition in behind else ""
        rows.append((str(partition), *words, mark))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
        print("  ".join(cells).rstrip())
    print(_sentence(compared))
    return exit_code(compared)


def exit_code(compared: Compared) -> int:
    """Return the exit code of a comparison."""
    return VIOLATED if compared.behind else HOLDS


def _sentence(compared: Compared) -> str:
    name = NAMES[compared.to]
    if compared.behind:
        number = counted(len(compared.behind), "partition")
        return f"not yet: {name} is behind in {number}"
    return f"go on, if each member commits to both: {name} is behind in no partition"


def copy(request: Request, to: Store) -> dict[str, Any]:
    """Write to ZooKeeper what is behind there, if no member of the group is alive."""
    if to is not Store.ZOOKEEPER:
        raise Stop(
            USAGE,
            "--copy writes to ZooKeeper only; members write to Kafka: set "
            "offsets.storage=kafka and dual.commit.enabled=true in them",
        )
    compared = compare(request, to)
    wanted = {partition: compared.stores[Store.KAFKA][partition] for partition in compared.behind}
    changed = offsets.set_to(request, wanted, "Kafka") if wanted else {}
    return {"group": compared.group, "file": "Kafka", "changed": changed}
