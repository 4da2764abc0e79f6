"""Faults of a control plane: a change of a healthy registry, and what an audit says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.registries import Nodes, Shape, state_path
from watchkeeper.model.audit.finding import FindingKind
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import (
    Controller,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicConfig,
    TopicDeletion,
)

SHAPE = Shape(brokers=3, topics={"clicks": 6})
"""Partition n has the replicas n % 3 and (n + 1) % 3."""


def set_state(nodes: Nodes, index: int, **fields: Any) -> None:
    """Write the state of a partition, which is healthy in all other fields."""
    state = {"leader": index % 3, "isr": (index % 3, (index + 1) % 3), "controller_epoch": 3}
    nodes[state_path("clicks", index)] = (PartitionState(**(state | fields)).encode(), 0)


@dataclass(frozen=True)
class Fault:
    """A change of a healthy registry, and what the audit says of it."""

    change: Callable[[Nodes], object]
    kind: FindingKind
    message: str


def write(path: str, data: bytes, session: int = 0) -> Callable[[Nodes], None]:
    return lambda nodes: nodes.update({path: (data, session)})


def remove(*paths_: str) -> Callable[[Nodes], object]:
    return lambda nodes: [nodes.pop(path) for path in paths_]


def state(index: int, **fields: Any) -> Callable[[Nodes], object]:
    return lambda nodes: set_state(nodes, index, **fields)


def moving(*moves: tuple[str, int, tuple[int, ...]]) -> Callable[[Nodes], None]:
    return write(paths.REASSIGN_PARTITIONS, Reassignment(moves).encode())


def electing(*partitions: tuple[str, int]) -> Callable[[Nodes], None]:
    request = PreferredReplicaElection(partitions)
    return write(paths.PREFERRED_REPLICA_ELECTION, request.encode())


def both(*changes: Callable[[Nodes], object]) -> Callable[[Nodes], object]:
    return lambda nodes: [change(nodes) for change in changes]


NO_PROGRESS = (
    "the deletion of clicks was requested; no progress: every partition has a leader; "
    "brokers ignore the request unless delete.topic.enable is true"
)
FAULTS = {
    "no controller": Fault(
        remove(paths.CONTROLLER),
        FindingKind.NO_CONTROLLER,
        "no broker is the controller, so no leader is elected and no request is carried out",
    ),
    "controller without registration": Fault(
        write(paths.CONTROLLER, Controller(9).encode(), 0x109),
        FindingKind.NO_CONTROLLER,
        "broker 9 is the controller and is not registered",
    ),
    "permanent controller": Fault(
        write(paths.CONTROLLER, Controller(0).encode()),
        FindingKind.PERMANENT,
        "/controller is no ephemeral, so no other broker becomes the controller when this one "
        "dies",
    ),
    "no epoch": Fault(
        remove(paths.CONTROLLER_EPOCH),
        FindingKind.CONTROLLER_EPOCH,
        "there is a controller, and /controller_epoch is missing",
    ),
    "epoch of the future": Fault(
        state(1, controller_epoch=4),
        FindingKind.CONTROLLER_EPOCH,
        "the state of clicks/1 has controller epoch 4, and /controller_epoch is 3",
    ),
    "no leader": Fault(
        both(state(0, leader=-1), state(3, leader=-1)),
        FindingKind.NO_LEADER,
        "clicks/0 has no leader; its last ISR is 0, 1",
    ),
    "dead leader": Fault(
        remove(paths.broker(2)),
        FindingKind.DEAD_LEADER,
        "clicks/2 is led by broker 2, which is not registered",
    ),
    "stranger in the ISR": Fault(
        state(0, isr=(0, 1, 2)),
        FindingKind.ISR,
        "the ISR of clicks/0 has 2; its replicas are 0, 1",
    ),
    "empty ISR": Fault(state(0, isr=()), FindingKind.ISR, "the ISR of clicks/0 is empty"),
    "leader not in the ISR": Fault(
        state(0, isr=(1,)),
        FindingKind.ISR,
        "clicks/0 is led by broker 0; its ISR is 1",
    ),
    "follower not in sync": Fault(
        state(0, isr=(0,)),
        FindingKind.UNDER_REPLICATED,
        "clicks/0 is not in sync on 1",
    ),
    "follower not registered": Fault(
        both(remove(paths.broker(1)), state(0, isr=(0,))),
        FindingKind.UNDER_REPLICATED,
        "clicks/0 is not in sync on 1; not registered: 1",
    ),
    "partition without state": Fault(
        remove(state_path("clicks", 4)),
        FindingKind.NO_STATE,
        "clicks/4 is assigned to 1, 2 and has no state",
    ),
    "state without assignment": Fault(
        write(state_path("clicks", 6), PartitionState(0, (0, 1)).encode()),
        FindingKind.ORPHAN,
        "/brokers/topics/clicks/partitions/6 exists, and clicks has no partition 6",
    ),
    "config without topic": Fault(
        write(paths.topic_config("old"), TopicConfig().encode()),
        FindingKind.ORPHAN,
        "/config/topics/old exists, and there is no topic old",
    ),
    "reassignment": Fault(
        moving(("clicks", 0, (1, 2))),
        FindingKind.REASSIGNMENT,
        "clicks/0 is to be moved to 1, 2: not in sync yet: 2",
    ),
    "reassignment to a dead broker": Fault(
        moving(("clicks", 0, (1, 9))),
        FindingKind.REASSIGNMENT,
        "clicks/0 is to be moved to 1, 9: it cannot end, not registered: 9",
    ),
    "reassignment of an unknown partition": Fault(
        moving(("clicks", 7, (1, 2))),
        FindingKind.REASSIGNMENT,
        "clicks/7 is to be moved to 1, 2: there is no such partition",
    ),
    "reassignment that is done": Fault(
        moving(("clicks", 0, (0, 1))),
        FindingKind.REASSIGNMENT,
        "clicks/0 is to be moved to 0, 1: its replicas are assigned so already, and the request "
        "remains",
    ),
    "reassignment that nearly is": Fault(
        moving(("clicks", 0, (1, 0))),
        FindingKind.REASSIGNMENT,
        "clicks/0 is to be moved to 1, 0: all are in sync, and 0, 1 are still assigned",
    ),
    "empty reassignment": Fault(
        moving(),
        FindingKind.REASSIGNMENT,
        "/admin/reassign_partitions lists no partition, and blocks later requests",
    ),
    "election": Fault(
        electing(("clicks", 0)),
        FindingKind.ELECTION,
        "the election of preferred replicas of 1 partition is requested and not carried out",
    ),
    "election of a partition without state": Fault(
        electing(("clicks", 0), ("clicks", 9)),
        FindingKind.ELECTION,
        "the election of preferred replicas of 2 partitions is requested and not carried out; "
        "clicks/9 has no state, so every controller fails at this request: delete "
        "/admin/preferred_replica_election",
    ),
    "deletion": Fault(
        write(paths.topic_deletion("clicks"), b""),
        FindingKind.STUCK_DELETION,
        NO_PROGRESS,
    ),
    "deletion as the page has it": Fault(
        write(paths.DELETE_TOPICS, TopicDeletion(("clicks",)).encode()),
        FindingKind.STUCK_DELETION,
        NO_PROGRESS,
    ),
    "deletion with a dead broker": Fault(
        both(write(paths.topic_deletion("clicks"), b""), remove(paths.broker(2))),
        FindingKind.STUCK_DELETION,
        "the deletion of clicks was requested; no progress: every partition has a leader; it "
        "waits for brokers that are not registered: 2",
    ),
    "deletion during a reassignment": Fault(
        both(write(paths.topic_deletion("clicks"), b""), moving(("clicks", 0, (1, 2)))),
        FindingKind.STUCK_DELETION,
        "the deletion of clicks was requested; no progress: every partition has a leader; it "
        "waits for the reassignment of the topic",
    ),
    "deletion of a topic that is gone": Fault(
        write(paths.topic_deletion("old"), b""),
        FindingKind.STUCK_DELETION,
        "the deletion of old was requested; the topic is gone, and the request remains",
    ),
    "imbalance": Fault(
        state(0, leader=1),
        FindingKind.LEADER_IMBALANCE,
        "broker 0 should lead 2 partitions and does not lead 1 of them (50 %, the limit is 10 %)",
    ),
}
