"""The names of a scenario: who and what there is, and what an entry may therefore name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from model.faults import MEMBERS, VERBS, Target, Verb
from model.plan import ClusterPlan, GroupPlan, ProducerPlan, StoragePlan
from scenarios.entries import verbs_of
from scenarios.problems import Problem, either, expected, shown
from scenarios.reading import Document, Path

NEED_DISKS = frozenset({"disk_slow", "disk_full"})
MOST_CREATED = 5_000
"""Partitions of a topic that the timeline creates."""


class Names:
    """Who and what there is, by its name."""

    def __init__(
        self,
        clusters: tuple[ClusterPlan, ...],
        groups: tuple[GroupPlan, ...],
        producers: tuple[ProducerPlan, ...],
        entries: Sequence[Any],
    ) -> None:
        self.clusters = clusters
        self.entries = entries
        prefixes = {
            cluster.name: f"{cluster.name}:" if len(clusters) > 1 else "" for cluster in clusters
        }
        topics = [topic for cluster in clusters for topic in cluster.topics]
        created = [entry.create_topic for entry in entries if entry.create_topic is not None]
        self.known: dict[Target, list[str]] = {
            "consumer": [one.node for group in groups for one in group.consumers],
            "broker": [one.node for cluster in clusters for one in cluster.brokers],
            "producer": [one.node for one in producers],
            "server": [
                f"{prefixes[cluster.name]}zookeeper/{number + 1}"
                for cluster in clusters
                for number in range(cluster.zookeeper.servers)
            ],
            "ensemble": [f"{prefix}zookeeper" for prefix in prefixes.values()],
            "topic": [*(topic.name for topic in topics), *created],
            "partition": [
                f"{topic.name}/{index}" for topic in topics for index, _ in topic.replicas
            ],
            "request": ["request", "reply"],
        }
        self.administrators = [f"{prefix}administrator" for prefix in prefixes.values()]
        self.broker_ids = {
            one.node: one.broker_id for cluster in clusters for one in cluster.brokers
        }
        self.layouts = {cluster.layout for cluster in clusters}

    def kinds_of(self, targets: Sequence[Target]) -> list[Target]:
        """Those of some kinds of target that a scenario may have: producers are not in all."""
        return [kind for kind in targets if kind != "producer" or self.known[kind]]

    def storage_of(self, broker: str) -> StoragePlan | None:
        """The storage of a broker's cluster."""
        having = (one for one in self.clusters if broker in {each.node for each in one.brokers})
        return next(having).storage

    @property
    def nodes(self) -> list[str]:
        """Whatever an event of a trace may be about."""
        known = [name for names in self.known.values() for name in names]
        return [*known, *self.administrators]

    def cluster_of(self, topic: str) -> ClusterPlan:
        """The cluster that has a topic; the first one for a topic that is new."""
        having = (
            cluster for cluster in self.clusters if topic in {one.name for one in cluster.topics}
        )
        return next(having, self.clusters[0])

    def partitions_of(self, entry: Any) -> int:
        """How many partitions a topic has after an entry that creates or enlarges it."""
        if entry.partitions_per_broker is None:
            return int(entry.partitions or 0)
        cluster = self.cluster_of(entry.create_topic or entry.add_partitions)
        ids = {one.broker_id for one in cluster.brokers}
        return int(entry.partitions_per_broker) * len(ids)

    def partitions(self) -> int:
        """How many partitions there are once everything in the timeline has happened."""
        sizes = {
            (cluster.name, topic.name): len(topic.replicas)
            for cluster in self.clusters
            for topic in cluster.topics
        }
        for entry in self.entries:
            topic = entry.create_topic or entry.add_partitions
            if topic is not None:
                key = (self.cluster_of(topic).name, topic)
                sizes[key] = max(sizes.get(key, 0), self.partitions_of(entry))
        return sum(sizes.values())


def entry_names(document: Document, names: Names, at: int, entry: Any) -> Iterator[Problem]:
    """What is wrong with the names in an entry, whose form is right."""
    verb = VERBS[verbs_of(entry)[0]]
    path: Path = ("timeline", at)
    if not verb.worlds:
        yield document.problem((*path, verb.name), f"cannot be done: {verb.lacking}")
        return
    for field, said in _wrong(names, verb, entry):
        yield document.problem((*path, *field), said)


def _wrong(names: Names, verb: Verb, entry: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Fields, and what is wrong with them."""
    target = getattr(entry, verb.name)
    kinds = names.kinds_of(verb.targets)
    allowed = [name for kind in kinds for name in names.known[kind]]
    if target not in allowed and verb.name != "create_topic":
        yield (verb.name,), expected(target, f"a {' or '.join(kinds)}", allowed)
    elif verb.name in NEED_DISKS and names.storage_of(target) is None:
        said = "has no disk: its cluster has no `storage`"
        yield (verb.name,), f"{target} {said}"
    elif verb.name == "move_leader":
        yield from _wrong_leader(names, target, entry.to)
    if verb.name == "create_topic" and names.partitions_of(entry) > MOST_CREATED:
        said = f"{target} gets {names.partitions_of(entry)} partitions"
        yield (verb.name,), f"{said}; expected at most {MOST_CREATED}"
    if entry.on is not None:
        kinds = names.kinds_of(MEMBERS)
        members = [name for kind in kinds for name in names.known[kind]]
        if entry.on.node not in members:
            yield ("on", "node"), expected(entry.on.node, f"a {either(kinds)}", members)
    if verb.name == "produce":
        yield from _wrong_sender(names, entry.from_)
    elif entry.from_ is not None:
        yield from _wrong_side(names, target, entry.from_)


def _wrong_leader(names: Names, partition: str, to: str) -> Iterator[tuple[tuple[str, ...], str]]:
    cluster = names.cluster_of(partition.rpartition("/")[0])
    if cluster.layout == "0.7":
        said = "the 0.7 layout has no leaders; partitions live where their name says"
        yield ("move_leader",), said
        return
    brokers = [one.node for one in cluster.brokers]
    if to not in brokers:
        yield ("to",), expected(to, f"a broker of the cluster {cluster.name}", brokers)


def _wrong_sender(names: Names, sender: str | None) -> Iterator[tuple[tuple[str, ...], str]]:
    sets = sorted({name.partition("/")[0] for name in names.known["producer"]})
    if sender is not None and sender not in sets:
        yield ("from",), expected(sender, "a producer", sets)


def _wrong_side(names: Names, target: str, other: str) -> Iterator[tuple[tuple[str, ...], str]]:
    sides = ["zookeeper", "brokers", *names.known["server"], *names.known["broker"]]
    if other == target:
        yield ("from",), f"{shown(other)} is {target} itself; expected the other side"
    elif other not in sides:
        yield ("from",), expected(other, "a side", sides)
