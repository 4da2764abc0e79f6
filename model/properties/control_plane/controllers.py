"""The judge of controllers, their epochs, and the leaders that they elect, in one cluster.

It follows the registry through the writes of a trace. A write of a partition's state is a
controller's, unless its leader changes the ISR.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import (
    NO_LEADER,
    ControllerEpoch,
    PartitionState,
    TopicAssignment,
    TopicConfig,
)
from watchkeeper.model.trace.assignments import assignment_of

ONE_CONTROLLER = Property(
    "one controller an epoch",
    "always",
    "every state of a partition is signed with an epoch that its writer has raised itself",
    exercise="a write of a partition's state",
)
EPOCHS = Property(
    "monotone epochs",
    "always",
    "no epoch falls, and each write of a partition's state raises its leader epoch",
    exercise="a write over an earlier epoch",
    is_optional=True,
)
DEPOSED = Property(
    "no deposed writes",
    "always",
    "no controller writes the state of a partition after another one has raised the epoch",
    exercise="a write of a partition's state after a second election",
    is_optional=True,
)
IN_SYNC = Property(
    "leader in sync",
    "always",
    "the ISR is a part of the replicas and not empty, and the leader is in it, or there is none",
    exercise="a write of a partition's state",
)
ACTING = Property(
    "acting controller",
    "at rest",
    "if a broker is alive, the broker that `/controller` names acts as the controller",
    exercise="a rest with a live broker",
)
LED = Property(
    "live leaders",
    "at rest",
    "a partition has a live leader if a replica that may lead it is alive",
    exercise="a rest with a live replica that may lead",
)

DELETIONS = f"{paths.DELETE_TOPICS}/"
SETTINGS = f"{paths.TOPIC_CONFIGS}/"

CONTROL_PLANE: tuple[Property, ...] = (ONE_CONTROLLER, EPOCHS, DEPOSED, IN_SYNC, ACTING, LED)
"""The properties of clusters whose brokers elect a controller."""


@dataclass(slots=True)
class Registry:
    """The control plane's part of the registry of one cluster, as its writes have left it."""

    epoch: int | None = None
    raised_by: dict[int, str] = field(default_factory=dict)
    """Epoch -> the broker that has raised the epoch to it."""
    controller: str = ""
    """The broker whose `/controller` it is; empty without one."""
    live: dict[int, str] = field(default_factory=dict)
    """Broker id -> the process that has registered it."""
    states: dict[Partition, PartitionState] = field(default_factory=dict)
    last_states: dict[Partition, PartitionState] = field(default_factory=dict)
    """The states, and those that have ended with a session: no request has deleted them."""
    replicas: dict[Partition, tuple[int, ...]] = field(default_factory=dict)
    deletions: dict[str, None] = field(default_factory=dict)
    """Topics that are to be deleted."""
    settings: dict[str, TopicConfig] = field(default_factory=dict)
    """Of topics."""
    acting: dict[str, int] = field(default_factory=dict)
    """Broker -> the epoch in which it has failed over and not resigned."""


class ClusterJudge:
    """Judges the control plane of one cluster."""

    def __init__(self, plan: ClusterPlan, evidence: Evidence) -> None:
        assert plan.controller is not None, "only clusters with a controller are judged"
        self.allows_unclean = plan.controller.allows_unclean
        self.evidence = evidence
        self.registry = Registry()
        self._brokers = {broker.node: broker.broker_id for broker in plan.brokers}
        self._planned = {topic.name: TopicAssignment(topic.replicas) for topic in plan.topics}

    # --- writes ------------------------------------------------------------------------

    def written(self, path: str, writer: str, data: str | None, at_us: int) -> None:
        """A znode was created or changed."""
        if path == paths.CONTROLLER:
            self.registry.controller = writer
        elif path == paths.CONTROLLER_EPOCH:
            self._epoch_written(path, writer, data or "", at_us)
        elif paths.parse_state(path) is not None:
            self._state_written(path, writer, data or "", at_us)
        elif path.startswith(f"{paths.BROKER_IDS}/"):
            self.registry.live[int(path.rpartition("/")[2])] = writer
        elif path.startswith(DELETIONS):
            self.registry.deletions[path.removeprefix(DELETIONS)] = None
        elif path.startswith(SETTINGS):
            self._settings_written(path, data or "")
        else:
            self._assignment_written(path, data or "")

    def deleted(self, path: str) -> None:
        """A request has deleted a znode."""
        partition = paths.parse_state(path)
        if partition is not None:
            self.registry.last_states.pop(partition, None)
        self.vanished(path)

    def vanished(self, path: str) -> None:
        """A znode was deleted, or has ended with the session of its owner."""
        partition = paths.parse_state(path)
        if path == paths.CONTROLLER:
            self.registry.controller = ""
        elif partition is not None:
            self.registry.states.pop(partition, None)
        elif path.startswith(f"{paths.BROKER_IDS}/"):
            self.registry.live.pop(int(path.rpartition("/")[2]), None)
        elif path.startswith(DELETIONS):
            self.registry.deletions.pop(path.removeprefix(DELETIONS), None)
        elif path.startswith(SETTINGS):
            self.registry.settings.pop(path.removeprefix(SETTINGS), None)
        else:
            self._forget_topic(path)

    def _settings_written(self, path: str, data: str) -> None:
        try:
            config = TopicConfig.decode(path, data.encode())
        except BadPayload:
            return
        self.registry.settings[path.removeprefix(SETTINGS)] = config

    def _epoch_written(self, path: str, writer: str, data: str, at_us: int) -> None:
        epoch = ControllerEpoch.decode(path, data.encode()).epoch
        before = self.registry.epoch
        if before is not None:
            self.evidence.exercise(EPOCHS)
            if epoch < before:
                text = f"{writer} wrote the controller epoch {epoch} over {before}"
                about = Subject((writer,), paths=(path, paths.CONTROLLER))
                self.evidence.violate(EPOCHS, at_us, "the controller epoch fell", text, about)
        self.registry.epoch = epoch
        self.registry.raised_by[epoch] = writer

    def _state_written(self, path: str, writer: str, data: str, at_us: int) -> None:
        partition = paths.parse_state(path)
        assert partition is not None, "only states come here"
        try:
            state = PartitionState.decode(path, data.encode())
        except BadPayload:
            return
        if not self._is_of_leader(partition, state, writer):
            self._judge_writer(partition, state, writer, at_us)
            self._judge_epochs(partition, state, writer, at_us)
        self._judge_isr(partition, state, at_us)
        self.registry.states[partition] = self.registry.last_states[partition] = state

    def _is_of_leader(self, partition: Partition, state: PartitionState, writer: str) -> bool:
        """Whether a leader has changed the ISR, and nothing else."""
        before = self.registry.states.get(partition)
        return (
            before is not None
            and self._brokers.get(writer) == state.leader
            and replace(before, isr=state.isr) == state
        )

    def _judge_writer(
        self, partition: Partition, state: PartitionState, writer: str, at_us: int
    ) -> None:
        signed, present = state.controller_epoch, self.registry.epoch or 0
        raised = self.registry.raised_by.get(signed, "no broker")
        self.evidence.exercise(ONE_CONTROLLER)
        if raised != writer:
            self.evidence.violate(
                ONE_CONTROLLER,
                at_us,
                "a state with the epoch of another controller",
                f"{writer} signed the state of {partition} with epoch {signed}, which {raised} "
                "has raised",
                _about(partition, writer),
            )
        if present > 1:
            self.evidence.exercise(DEPOSED)
        if signed < present:
            self.evidence.violate(
                DEPOSED,
                at_us,
                "a deposed controller wrote a state",
                f"{writer} wrote the state of {partition} in epoch {signed}, when the epoch was "
                f"{present}",
                _about(partition, writer),
            )

    def _judge_epochs(
        self, partition: Partition, state: PartitionState, writer: str, at_us: int
    ) -> None:
        before = self.registry.last_states.get(partition)
        if before is None:
            return
        self.evidence.exercise(EPOCHS)
        if state.controller_epoch < before.controller_epoch:
            self.evidence.violate(
                EPOCHS,
                at_us,
                "the controller epoch of a state fell",
                f"{writer} wrote the state of {partition} with controller epoch "
                f"{state.controller_epoch} over {before.controller_epoch}",
                _about(partition, writer),
            )
        if state.leader_epoch <= before.leader_epoch:
            self.evidence.violate(
                EPOCHS,
                at_us,
                "a leader epoch was not raised",
                f"{writer} wrote the state of {partition} with leader epoch "
                f"{state.leader_epoch} over {before.leader_epoch}",
                _about(partition, writer),
            )

    def _judge_isr(self, partition: Partition, state: PartitionState, at_us: int) -> None:
        self.evidence.exercise(IN_SYNC)
        replicas = self.registry.replicas.get(partition)
        for shape, is_wrong in (
            ("an empty ISR", not state.isr),
            (
                "a leader outside of the ISR",
                state.leader != NO_LEADER and state.leader not in state.isr,
            ),
            (
                "an ISR with brokers that are no replicas",
                replicas is not None and not set(state.isr) <= set(replicas),
            ),
        ):
            if is_wrong:
                text = f"{partition} has the leader {state.leader} and the ISR {list(state.isr)}"
                self.evidence.violate(IN_SYNC, at_us, shape, text, _about(partition))

    # --- assignments -------------------------------------------------------------------

    def _assignment_written(self, path: str, data: str) -> None:
        topic = paths.parse_topic(path)
        if topic is None:
            return
        found = assignment_of(path, data) or self._planned.get(topic)
        for index, replicas in () if found is None else found.replicas:
            self.registry.replicas[Partition(topic, str(index))] = replicas

    def _forget_topic(self, path: str) -> None:
        topic = paths.parse_topic(path)
        for partition in [one for one in self.registry.replicas if one.topic == topic]:
            del self.registry.replicas[partition]

    # --- processes ---------------------------------------------------------------------

    def failed_over(self, node: str, epoch: int) -> None:
        """A broker acts as the controller from now on."""
        self.registry.acting[node] = epoch

    def ceased(self, node: str) -> None:
        """A broker does not act any more: it has resigned, has ended or is new."""
        self.registry.acting.pop(node, None)

    # --- at rest -----------------------------------------------------------------------

    def judge_rest(self, history: History) -> None:
        """Judge what has to hold when nothing is pending."""
        registry, at_us = self.registry, history.now_us
        if not registry.live:
            return
        self.evidence.exercise(ACTING)
        if registry.controller not in registry.acting:
            named = registry.controller or "no broker"
            text = f"/controller names {named}, which does not act as the controller"
            nodes = (registry.controller,) if registry.controller else ()
            about = Subject(nodes, paths=(paths.CONTROLLER, paths.CONTROLLER_EPOCH))
            self.evidence.violate(ACTING, at_us, "no controller acts", text, about)
        for partition in sorted(registry.replicas):
            if partition.topic not in registry.deletions:
                self._judge_leader(partition, at_us)

    def _judge_leader(self, partition: Partition, at_us: int) -> None:
        live = self.registry.live
        state = self.registry.states.get(partition)
        able = [broker for broker in self.able(partition, state) if broker in live]
        if not able:
            return
        self.evidence.exercise(LED)
        if state is None:
            text = f"{partition} has no state, and {able} may lead it"
            shape = "a partition without a state"
            self.evidence.violate(LED, at_us, shape, text, _about(partition))
        elif state.leader not in live:
            text = f"{partition} has the leader {state.leader}, and {able} may lead it"
            shape = "a partition without a live leader"
            self.evidence.violate(LED, at_us, shape, text, _about(partition))

    def able(self, partition: Partition, state: PartitionState | None) -> tuple[int, ...]:
        """The replicas that may lead a partition if they are alive."""
        own = self.registry.settings.get(partition.topic, TopicConfig())
        if state is None or own.allows_unclean(self.allows_unclean):
            return self.registry.replicas[partition]
        return state.isr


def _about(partition: Partition, *writers: str) -> Subject:
    """What a violation is about: who wrote, the state, and what makes a controller."""
    state = paths.partition_state(partition)
    return Subject(
        writers,
        partitions=(partition,),
        topic=partition.topic,
        paths=(state, paths.CONTROLLER, paths.CONTROLLER_EPOCH),
    )
