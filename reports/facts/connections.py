"""The connections between consumers and brokers at the end of a run, derived from its trace.

A consumer is connected to a broker when it fetches a partition that the broker serves. If
several brokers serve a partition, it is fetched from the leader that its state in the registry
names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.intervals import cluster_of, clusters, fetched, hosted
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.facts.sessions import NOT_RUNNING, process_states
from watchkeeper.reports.facts.spans import Span

Pair = tuple[str, str]
"""A consumer and a broker."""


@dataclass(slots=True)
class Connections:
    """The connections there are at the end."""

    consumers: list[str] = field(default_factory=list)
    """Consumers that run or fetch, with or without a connection."""
    brokers: list[str] = field(default_factory=list)
    """Brokers that serve a partition."""
    partitions: dict[Pair, list[Partition]] = field(default_factory=dict)
    """The partitions fetched over each connection."""
    pairs_of: dict[tuple[str, str], set[Pair]] = field(default_factory=dict)
    """Group and topic -> its connections."""
    unserved: list[tuple[str, Partition]] = field(default_factory=list)
    """Consumers that fetch a partition without a serving broker or a known leader."""


def connections(trace: Trace) -> Connections:
    """Find the connections at the end of a trace."""
    serving = {partition: in_force(spans, trace) for partition, spans in hosted(trace).items()}
    leaders = leading(
        trace, [partition for partition, brokers in serving.items() if len(brokers) > 1]
    )
    home = clusters(trace)
    found = Connections(
        consumers=_running(trace),
        brokers=sorted({broker for some in serving.values() for broker in some}, key=natural),
    )
    for place, spans in fetched(trace).items():
        partition = Partition(place.topic, place.partition)
        cluster = home.get(place.group, "")
        brokers = [
            broker for broker in serving.get(partition, ()) if cluster_of(broker) == cluster
        ]
        broker = brokers[0] if len(brokers) == 1 else leaders.get((cluster, partition))
        for consumer in in_force(spans, trace):
            if broker is None:
                found.unserved.append((consumer, partition))
                continue
            pair = (consumer, broker)
            found.partitions.setdefault(pair, []).append(partition)
            found.pairs_of.setdefault((place.group, place.topic), set()).add(pair)
    return found


def in_force(spans: Sequence[Span], trace: Trace) -> list[str]:
    """The subjects of the spans that last until the end of a trace."""
    last = len(trace) - 1
    return sorted({span.what for span in spans if span.last_seq == last}, key=natural)


def _running(trace: Trace) -> list[str]:
    """The members of groups that run at the end."""
    members = {
        event.node
        for event in trace.of_kind(EventKind.STARTED, EventKind.FETCHING)
        if event.group
    }
    states = process_states(trace)
    gone = {name for name in members if name in states and states[name][-1].what == NOT_RUNNING}
    return sorted(members - gone, key=natural)


def leading(trace: Trace, partitions: Sequence[Partition]) -> dict[tuple[str, Partition], str]:
    """The leader of each partition in each cluster, by the registry at the end."""
    wanted = {paths.partition_state(partition): partition for partition in partitions}
    if not wanted:
        return {}
    leaders: dict[tuple[str, Partition], int] = {}
    nodes: dict[tuple[str, str], str] = {}
    for event in trace.of_kind(EventKind.APPLIED):
        cluster = cluster_of(event.node)
        for what, path, *rest in event.detail.get("did", ()):
            if what != "deleted" and path in wanted:
                leaders[cluster, wanted[path]] = _leader(path, rest[-1])
            elif what != "deleted" and paths.parent_of(path) == paths.BROKER_IDS:
                nodes[cluster, path] = str(event.detail.get("by", ""))
    return {
        (cluster, partition): nodes[cluster, paths.broker(broker_id)]
        for (cluster, partition), broker_id in leaders.items()
        if (cluster, paths.broker(broker_id)) in nodes
    }


def _leader(path: str, data: str | None) -> int:
    """The leader that a partition's state names; -1 for none."""
    try:
        return PartitionState.decode(path, (data or "").encode()).leader
    except BadPayload:
        return -1


def connection_sentences(found: Connections) -> list[str]:
    """The number of connections for each group and topic, as sentences."""
    lines = [
        _sentence(group, topic, pairs) for (group, topic), pairs in sorted(found.pairs_of.items())
    ]
    if not lines:
        lines.append("No member fetches anything.")
    if found.unserved:
        number = counted(len(found.unserved), "partition")
        lines.append(f"{number} fetched from an unknown broker: not drawn.")
    return lines


def _sentence(group: str, topic: str, pairs: set[Pair]) -> str:
    consumers = len({consumer for consumer, _ in pairs})
    brokers = len({broker for _, broker in pairs})
    return (
        f"{group} · {topic}: {counted(len(pairs), 'connection')} between "
        f"{counted(consumers, 'consumer')} and {counted(brokers, 'broker')}; "
        f"the fewest possible are {max(consumers, brokers)}."
    )


def heaviest(found: Connections, most: int) -> tuple[list[str], list[str], str]:
    """The consumers and brokers to draw if there are too many, and a sentence on the others."""
    weight: dict[str, int] = {}
    for pair, partitions in found.partitions.items():
        for name in pair:
            weight[name] = weight.get(name, 0) + len(partitions)
    consumers = _first(found.consumers, weight, most)
    brokers = _first(found.brokers, weight, most)
    sides = (("consumers", consumers, found.consumers), ("brokers", brokers, found.brokers))
    cut = [f"{len(some)} of {len(all_)} {side}" for side, some, all_ in sides if some != all_]
    banner = (
        f"Drawn are the {' and the '.join(cut)} with the most partitions, and the lines between "
        "those that are drawn; numbers in boxes are of all."
        if cut
        else ""
    )
    return consumers, brokers, banner


def _first(names: list[str], weight: Mapping[str, int], most: int) -> list[str]:
    heavy = sorted(names, key=lambda name: (-weight.get(name, 0), natural(name)))[:most]
    return sorted(heavy, key=natural)
