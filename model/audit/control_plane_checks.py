"""The checks of the control plane of a 0.8 cluster, a small function for each fault.

They apply where a controller has been: /controller_epoch exists from the first controller on. The
partitions of a topic that is being deleted lose their leaders one by one; they are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from watchkeeper.model.audit.control_plane import ControlPlane, PartitionView, TopicView
from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER

LIMIT_PERCENT = 10
"""More than this share not led by the preferred replica, and a controller rebalances leaders."""


def control_findings(seen: ControlPlane) -> list[Finding]:
    """Every finding on the control plane."""
    found = [finding for look in LOOKS for finding in look(seen)] if seen.is_present else []
    return [*_bad_payloads(seen), *found, *_orphans(seen)]


def control_notes(seen: ControlPlane) -> list[str]:
    """The notes on the control plane."""
    if seen.topics and not seen.is_present:
        return [
            "no controller has been here (no /controller_epoch), so leaders and replicas are not "
            "judged"
        ]
    return [
        f"{topic.name} is being deleted: {len(gone)} of "
        f"{counted(len(topic.partitions), 'partition')} no longer have a leader"
        for topic in (seen.topics[name] for name in seen.deletions if name in seen.topics)
        if (gone := _without_leader(topic))
    ]


def _without_leader(topic: TopicView) -> list[PartitionView]:
    return [one for one in topic.partitions.values() if one.leader == NO_LEADER]


def _bad_payloads(seen: ControlPlane) -> Iterator[Finding]:
    """What consumers read too is found with the rest of the registry."""
    for path, message in seen.bad.items():
        if paths.is_of_controller(path):
            yield Finding(FindingKind.BAD_PAYLOAD, message, path=path)


def _controller(seen: ControlPlane) -> Iterator[Finding]:
    node = seen.snapshot.nodes.get(paths.CONTROLLER)
    if node is None:
        message = (
            "no broker is the controller, so no leader is elected and no request is carried out"
        )
        yield Finding(FindingKind.NO_CONTROLLER, message, path=paths.CONTROLLER)
        return
    if not node.session:
        message = (
            f"{paths.CONTROLLER} is no ephemeral, so no other broker becomes the controller when "
            "this one dies"
        )
        yield Finding(FindingKind.PERMANENT, message, path=paths.CONTROLLER)
    if seen.controller is not None and seen.controller.broker not in seen.brokers:
        message = f"broker {seen.controller.broker} is the controller and is not registered"
        yield Finding(FindingKind.NO_CONTROLLER, message, path=paths.CONTROLLER)


def _epochs(seen: ControlPlane) -> Iterator[Finding]:
    if seen.epoch is None:
        if paths.CONTROLLER in seen.snapshot.nodes and paths.CONTROLLER_EPOCH not in seen.bad:
            message = f"there is a controller, and {paths.CONTROLLER_EPOCH} is missing"
            yield Finding(FindingKind.CONTROLLER_EPOCH, message, path=paths.CONTROLLER_EPOCH)
        return
    for one in seen.partitions():
        if one.state is not None and one.state.controller_epoch > seen.epoch:
            message = (
                f"the state of {one.partition} has controller epoch "
                f"{one.state.controller_epoch}, and {paths.CONTROLLER_EPOCH} is {seen.epoch}"
            )
            yield _on(one, FindingKind.CONTROLLER_EPOCH, message)


def _leaders(seen: ControlPlane) -> Iterator[Finding]:
    for one in _judged(seen):
        if one.is_unreadable:
            continue
        if one.state is None:
            message = f"{one.partition} is assigned to {_ids(one.replicas)} and has no state"
            yield _on(one, FindingKind.NO_STATE, message)
        elif one.leader == NO_LEADER:
            message = f"{one.partition} has no leader; its last ISR is {_ids(one.isr)}"
            yield _on(one, FindingKind.NO_LEADER, message)
        elif one.leader not in seen.brokers:
            message = f"{one.partition} is led by broker {one.leader}, which is not registered"
            yield _on(one, FindingKind.DEAD_LEADER, message)


def _isrs(seen: ControlPlane) -> Iterator[Finding]:
    moves = seen.moves()
    for one in _judged(seen):
        if one.state is None:
            continue
        due = moves.get((one.partition.topic, int(one.partition.name)), ())
        strangers = [broker for broker in one.isr if broker not in {*one.replicas, *due}]
        if strangers:
            message = (
                f"the ISR of {one.partition} has {_ids(strangers)}; its replicas are "
                f"{_ids(one.replicas)}"
            )
            yield _on(one, FindingKind.ISR, message)
        elif not one.isr:
            yield _on(one, FindingKind.ISR, f"the ISR of {one.partition} is empty")
        elif one.leader not in (NO_LEADER, *one.isr):
            message = f"{one.partition} is led by broker {one.leader}; its ISR is {_ids(one.isr)}"
            yield _on(one, FindingKind.ISR, message)
        missing = [broker for broker in one.replicas if broker not in one.isr]
        if missing and one.isr:
            message = f"{one.partition} is not in sync on {_ids(missing)}{_why(missing, seen)}"
            yield _on(one, FindingKind.UNDER_REPLICATED, message)


def _why(missing: Iterable[int], seen: ControlPlane) -> str:
    dead = [broker for broker in missing if broker not in seen.brokers]
    return f"; not registered: {_ids(dead)}" if dead else ""


def _judged(seen: ControlPlane) -> Iterator[PartitionView]:
    return (one for one in seen.partitions() if one.partition.topic not in seen.deletions)


def _orphans(seen: ControlPlane) -> Iterator[Finding]:
    for topic in seen.topics.values():
        for name in topic.strays:
            path = f"{paths.partitions(topic.name)}/{name}"
            message = f"{path} exists, and {topic.name} has no partition {name}"
            yield Finding(FindingKind.ORPHAN, message, path=path)
    there = seen.snapshot.children(paths.TOPICS)
    for name in seen.snapshot.children(paths.TOPIC_CONFIGS):
        if name not in there:
            path = paths.topic_config(name)
            message = f"{path} exists, and there is no topic {name}"
            yield Finding(FindingKind.ORPHAN, message, path=path)


def _reassignments(seen: ControlPlane) -> Iterator[Finding]:
    if seen.reassignment is not None and not seen.reassignment.moves:
        message = f"{paths.REASSIGN_PARTITIONS} lists no partition, and blocks later requests"
        yield Finding(FindingKind.REASSIGNMENT, message, path=paths.REASSIGN_PARTITIONS)
    for (topic, index), target in seen.moves().items():
        message = f"{topic}/{index} is to be moved to {_ids(target)}: "
        message += _progress(seen, topic, index, target)
        yield Finding(
            FindingKind.REASSIGNMENT,
            message,
            path=paths.REASSIGN_PARTITIONS,
            partition=f"{topic}/{index}",
        )


def _progress(seen: ControlPlane, topic: str, index: int, target: tuple[int, ...]) -> str:
    known = seen.topics.get(topic)
    one = None if known is None else known.partitions.get(index)
    if one is None:
        return "there is no such partition"
    dead = [broker for broker in target if broker not in seen.brokers]
    if dead:
        return f"it cannot end, not registered: {_ids(dead)}"
    missing = [broker for broker in target if broker not in one.isr]
    if missing:
        return f"not in sync yet: {_ids(missing)}"
    if one.replicas == target:
        return "its replicas are assigned so already, and the request remains"
    return f"all are in sync, and {_ids(one.replicas)} are still assigned"


def _elections(seen: ControlPlane) -> Iterator[Finding]:
    if seen.election is None:
        return
    many = counted(len(seen.election.partitions), "partition")
    message = f"the election of preferred replicas of {many} is requested and not carried out"
    stuck = [
        f"{topic}/{index}"
        for topic, index in seen.election.partitions
        if topic not in seen.topics
        or (one := seen.topics[topic].partitions.get(index)) is None
        or one.state is None
    ]
    if stuck:
        message += (
            f"; {stuck[0]} has no state, so every controller fails at this request: delete "
            f"{paths.PREFERRED_REPLICA_ELECTION}"
        )
    yield Finding(FindingKind.ELECTION, message, path=paths.PREFERRED_REPLICA_ELECTION)


def _deletions(seen: ControlPlane) -> Iterator[Finding]:
    for name in seen.deletions:
        path = paths.topic_deletion(name)
        topic = seen.topics.get(name)
        if topic is None:
            why = "the topic is gone, and the request remains"
        elif _without_leader(topic):
            continue
        else:
            why = f"no progress: every partition has a leader{_blocked(seen, topic)}"
        yield Finding(
            FindingKind.STUCK_DELETION, f"the deletion of {name} was requested; {why}", path=path
        )


def _blocked(seen: ControlPlane, topic: TopicView) -> str:
    replicas = {broker for one in topic.partitions.values() for broker in one.replicas}
    dead = sorted(replicas - seen.brokers)
    if dead:
        return f"; it waits for brokers that are not registered: {_ids(dead)}"
    if any(name == topic.name for name, _ in seen.moves()):
        return "; it waits for the reassignment of the topic"
    return "; brokers ignore the request unless delete.topic.enable is true"


def _leader_imbalance(seen: ControlPlane) -> Iterator[Finding]:
    shares: dict[int, list[PartitionView]] = {}
    for one in _judged(seen):
        if one.preferred is not None and one.state is not None:
            shares.setdefault(one.preferred, []).append(one)
    for broker, partitions in sorted(shares.items()):
        others = sum(one.leader != broker for one in partitions)
        percent = 100 * others / len(partitions)
        if broker in seen.brokers and percent > LIMIT_PERCENT:
            message = (
                f"broker {broker} should lead {counted(len(partitions), 'partition')} and does "
                f"not lead {others} of them ({percent:.0f} %, the limit is {LIMIT_PERCENT} %)"
            )
            yield Finding(FindingKind.LEADER_IMBALANCE, message)


def _on(one: PartitionView, kind: FindingKind, message: str) -> Finding:
    path = paths.partition_state(one.partition)
    return Finding(kind, message, path=path, partition=str(one.partition))


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "no broker"


LOOKS: tuple[Callable[[ControlPlane], Iterator[Finding]], ...] = (
    _controller,
    _epochs,
    _leaders,
    _isrs,
    _reassignments,
    _elections,
    _deletions,
    _leader_imbalance,
)
