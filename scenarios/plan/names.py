"""The names of a scenario, and the check of the names in timeline entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC
from watchkeeper.model.plan.faults import MEMBERS, VERBS, Target, Verb
from watchkeeper.model.plan.plan import (
    ClusterPlan,
    GroupPlan,
    ProcessPlan,
    ProducerPlan,
    process_of,
)
from watchkeeper.model.plan.roles import (
    CONTROLLER,
    FOLLOWER,
    PARTITION_LEADER,
    ROLES,
    Role,
    led_by,
    role_of,
)
from watchkeeper.model.zookeeper.paths import is_valid
from watchkeeper.scenarios.schema.entries import verbs_of
from watchkeeper.scenarios.text.document import Document, Path
from watchkeeper.scenarios.text.errors import Problem, either, expected, shown

NEED_DISKS = frozenset({"disk_slow", "disk_full"})
NOT_IN_ALL: tuple[Target, ...] = ("producer", "administrator", "process")
MOST_CREATED = 5_000
"""Partitions of a topic that the timeline creates."""


class Names:
    """The processes, topics and clusters of a scenario, by name."""

    def __init__(
        self,
        clusters: tuple[ClusterPlan, ...],
        groups: tuple[GroupPlan, ...],
        producers: tuple[ProducerPlan, ...],
        processes: tuple[ProcessPlan, ...],
        entries: Sequence[Any],
    ) -> None:
        self.clusters = clusters
        self.entries = entries
        self.sent_to = frozenset(producer.cluster for producer in producers)
        """The clusters that have producers."""
        self.processes = processes
        prefixes = {
            cluster.name: f"{cluster.name}:" if len(clusters) > 1 else "" for cluster in clusters
        }
        self.prefixes = list(prefixes.values())
        """What the paths and the processes of each cluster begin with."""
        topics = [topic for cluster in clusters for topic in cluster.topics]
        created = [entry.create_topic for entry in entries if entry.create_topic is not None]
        self.known: dict[Target, list[str]] = {
            "consumer": [consumer.node for group in groups for consumer in group.consumers],
            "broker": [broker.node for cluster in clusters for broker in cluster.brokers],
            "producer": [producer.node for producer in producers],
            "administrator": [
                cluster.administrator(prefixes[cluster.name])
                for cluster in clusters
                if cluster.administrator("")
            ],
            "process": [process.name for process in processes],
            "server": [
                f"{prefixes[cluster.name]}zookeeper/{number + 1}"
                for cluster in clusters
                for number in range(cluster.zookeeper.servers)
            ],
            "ensemble": [f"{prefix}zookeeper" for prefix in prefixes.values()],
            "topic": [*(topic.name for topic in topics), *created, *_written(clusters, entries)],
            "partition": [
                f"{topic.name}/{index}" for topic in topics for index, _ in topic.replicas
            ],
            "request": ["request", "reply"],
            "znode": [],
        }
        self.roles = _roles_in(clusters, prefixes)
        self.broker_ids = {
            broker.node: broker.broker_id for cluster in clusters for broker in cluster.brokers
        }
        self.layouts = {cluster.layout for cluster in clusters}

    def kinds_of(self, targets: Sequence[Target]) -> list[Target]:
        """Those of some kinds of target that a scenario has: some kinds are not in all."""
        return [kind for kind in targets if kind not in NOT_IN_ALL or self.known[kind]]

    def has_disk(self, broker: str) -> bool:
        """Whether the brokers of a broker's cluster store messages."""
        having = (
            cluster
            for cluster in self.clusters
            if broker in {each.node for each in cluster.brokers}
        )
        return next(having).has_messages

    @property
    def nodes(self) -> list[str]:
        """Every name that may stand in the `node` column of a trace."""
        return [name for names in self.known.values() for name in names]

    def cluster_of(self, topic: str) -> ClusterPlan:
        """The cluster that has a topic; the first cluster for a topic that is new."""
        having = (
            cluster
            for cluster in self.clusters
            if topic in {topic.name for topic in cluster.topics}
        )
        return next(having, self.clusters[0])

    def partitions_of(self, entry: Any) -> int:
        """How many partitions a topic has after an entry that creates or enlarges it."""
        if entry.partitions_per_broker is None:
            return int(entry.partitions or 0)
        cluster = self.cluster_of(entry.create_topic or entry.add_partitions)
        ids = {broker.broker_id for broker in cluster.brokers}
        return int(entry.partitions_per_broker) * len(ids)

    def partitions(self) -> int:
        """The number of partitions after every entry of the timeline."""
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
    """The problems with the names in an entry whose form is valid."""
    verb = VERBS[verbs_of(entry)[0]]
    path: Path = ("timeline", at)
    if not verb.worlds:
        yield document.problem((*path, verb.name), f"cannot be done: {verb.lacking}")
        return
    for field, message in _wrong(names, verb, entry):
        yield document.problem((*path, *field), message)


def _wrong(names: Names, verb: Verb, entry: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """The fields with problems, and each problem."""
    target = getattr(entry, verb.name)
    kinds = names.kinds_of(verb.targets)
    allowed = [name for kind in kinds for name in names.known[kind]]
    roles = [name for kind in kinds for name in names.roles.get(kind, [])]
    refused = _refused_role(target, verb, roles)
    if "znode" in verb.targets:
        yield from _wrong_znode(names, verb.name, target)
    elif refused:
        yield (verb.name,), refused
    elif _names_leader(names, target) and "broker" in verb.targets:
        pass
    elif target not in allowed + roles and verb.name != "create_topic":
        yield (verb.name,), expected(target, f"a {' or '.join(kinds)}", allowed + roles)
    elif "process" in verb.targets and (name := process_of(names.processes, target)) != target:
        yield (
            (verb.name,),
            f"{target} runs in the process {name}, with others; expected {name}: "
            f"`{verb.name}` affects a whole process",
        )
    elif verb.name in NEED_DISKS and not names.has_disk(target):
        message = "has no disk: its cluster needs `storage` or `replication`"
        yield (verb.name,), f"{target} {message}"
    elif verb.name == "move_leader":
        yield from _wrong_leader(names, target, entry.to)
    if verb.name == "create_topic" and names.partitions_of(entry) > MOST_CREATED:
        message = f"{target} gets {names.partitions_of(entry)} partitions"
        yield (verb.name,), f"{message}; expected at most {MOST_CREATED}"
    if entry.on is not None:
        kinds = names.kinds_of(MEMBERS)
        members = [name for kind in kinds for name in names.known[kind]]
        members += [name for name in names.roles.get("broker", []) if role_of(name) is CONTROLLER]
        if entry.on.node not in members and not _names_leader(names, entry.on.node):
            yield ("on", "node"), expected(entry.on.node, f"a {either(kinds)}", members)
    if verb.name == "produce":
        yield from _wrong_sender(names, entry.from_)
        yield from _wrong_acks(names, entry)
    elif entry.from_ is not None:
        yield from _wrong_side(names, target, entry.from_)


def _written(clusters: Iterable[ClusterPlan], entries: Sequence[Any]) -> list[str]:
    """The topics that are written to, where a broker creates those that do not exist."""
    plans = (cluster.replication for cluster in clusters)
    if not any(plan is not None and plan.auto_creation is not None for plan in plans):
        return []
    return [entry.produce for entry in entries if entry.produce is not None]


def _wrong_znode(names: Names, field: str, target: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """A path, behind the name of its cluster if there are several."""
    prefix, _, path = target.partition("/")
    if prefix not in names.prefixes:
        begins = either([f"{shown(each + '/')}" for each in names.prefixes])
        yield (field,), f"{shown(target)} is not the path of a znode; expected {begins} first"
    elif not path or not is_valid(f"/{path}"):
        yield (field,), f"{shown(target)} is not the path of a znode below the root"
    elif path.partition("/")[0] == "zookeeper":
        yield (field,), f"{shown(target)} belongs to ZooKeeper itself; expected a path of Kafka's"


def _roles_in(
    clusters: tuple[ClusterPlan, ...], prefixes: Mapping[str, str]
) -> dict[Target, list[str]]:
    """Kind of target -> the roles that a process of that kind has in a scenario."""
    roles: dict[Target, list[str]] = {}
    for cluster in clusters:
        for role in ROLES.values():
            if _has_role(cluster, role):
                roles.setdefault(role.target, []).append(f"{prefixes[cluster.name]}{role.name}")
    return roles


def _has_role(cluster: ClusterPlan, role: Role) -> bool:
    """Whether a process of a cluster can have a role."""
    if role is FOLLOWER:
        return cluster.zookeeper.servers > 1
    return role not in (CONTROLLER, PARTITION_LEADER) or cluster.controller is not None


def _refused_role(target: str, verb: Verb, roles: list[str]) -> str:
    """Why a role cannot be the target of a verb; empty if it can, or if it names no role."""
    role = role_of(target)
    if role is None or role.target not in verb.targets:
        return ""
    if role is FOLLOWER and target not in roles:
        return f"{shown(target)} names no process: a single server has no follower"
    if role is PARTITION_LEADER:
        return _wrong_partition_leader(target, verb, roles)
    if role is CONTROLLER and target not in roles:
        return (
            f"{shown(target)} names no process: no program here is a controller; expected a "
            "process by its name, or `leaders: controller` for the cluster"
        )
    return dict(role.refused).get(verb.name, "")


def _wrong_partition_leader(target: str, verb: Verb, roles: list[str]) -> str:
    """Why a `leader of` names no broker; whether the partition exists shows when it strikes."""
    topic, partition = led_by(target)
    prefix = target.removesuffix(target.rpartition(":")[2])
    if f"{prefix}{PARTITION_LEADER.name}" not in roles:
        return f"{shown(target)} names no process; it needs `leaders: controller` for the cluster"
    if not topic or not partition.isdigit():
        return f"{shown(target)} names no partition; expected `leader of TOPIC/NUMBER`"
    return dict(PARTITION_LEADER.refused).get(verb.name, "")


def _names_leader(names: Names, target: str) -> bool:
    """Whether a target names the leader of a partition that the scenario has, or of offsets."""
    if role_of(target) is not PARTITION_LEADER:
        return False
    topic, partition = led_by(target)
    return partition.isdigit() and topic in (*names.known["topic"], OFFSETS_TOPIC)


def _wrong_leader(names: Names, partition: str, to: str) -> Iterator[tuple[tuple[str, ...], str]]:
    cluster = names.cluster_of(partition.rpartition("/")[0])
    if cluster.layout == "0.7":
        message = "the 0.7 layout has no leaders; partitions live where their name says"
        yield ("move_leader",), message
        return
    if cluster.controller is not None:
        message = "the administrator moves no leaders where a controller elects them"
        yield ("move_leader",), message
        return
    brokers = [broker.node for broker in cluster.brokers]
    if to not in brokers:
        yield ("to",), expected(to, f"a broker of the cluster {cluster.name}", brokers)


def _wrong_sender(names: Names, sender: str | None) -> Iterator[tuple[tuple[str, ...], str]]:
    sets = sorted({name.partition("/")[0] for name in names.known["producer"]})
    if sender is not None and sender not in sets:
        yield ("from",), expected(sender, "a producer", sets)


def _wrong_acks(names: Names, entry: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Refuse options of a load without an effect where brokers replicate."""
    cluster = names.cluster_of(entry.produce)
    if cluster.replication is None:
        return
    if entry.size is not None:
        yield ("size",), "has no effect: messages to brokers that replicate have one size"
    if entry.acks is not None and cluster.name in names.sent_to:
        message = "is a setting of the producers: set `request.required.acks` in their `config`"
        yield ("acks",), message


def _wrong_side(names: Names, target: str, other: str) -> Iterator[tuple[tuple[str, ...], str]]:
    servers = [*names.known["server"], *names.roles.get("server", [])]
    sides = ["zookeeper", "brokers", *servers, *names.known["broker"]]
    if other == target:
        yield ("from",), f"{shown(other)} is {target} itself; expected the other side"
    elif other not in sides:
        yield ("from",), expected(other, "a side", sides)
