"""Judges the control plane of a searched cluster: its controllers, their epochs, its leaders.

Writes and states at rest are judged by the judge of traces. A write is judged against the znodes
before it, so the judge begins anew for each one; which epochs its writer has raised stands in
the state of the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Actors, Member
from watchkeeper.checker.actors.transitions import Step, Transitions
from watchkeeper.model.controller.broker import ControllingBrokerState
from watchkeeper.model.counterexample.counterexample import UNKNOWN_OWNER
from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.control_plane.controllers import (
    ACTING,
    DEPOSED,
    EPOCHS,
    IN_SYNC,
    LED,
    ONE_CONTROLLER,
    ClusterJudge,
)
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER, ControllerEpoch, PartitionState
from watchkeeper.model.zookeeper.tree import Change
from watchkeeper.model.zookeeper.znode import Znode

Nodes = Mapping[str, Znode]

OF_WRITES = (ONE_CONTROLLER, EPOCHS, DEPOSED, IN_SYNC)
"""The properties of each write."""
AT_REST = (ACTING, LED)
"""The properties of a state in which nothing has to come any more."""
WRITER, ANOTHER = "the writer", "another broker"
WRITTEN_BY_BROKERS = (paths.CONTROLLER, "/brokers/")
MOST_WRITES = 100_000
"""The judgements of writes that are remembered."""


class WriteJudgement(NamedTuple):
    """The judgement of one write."""

    violations: tuple[tuple[str, str], ...]
    """The properties that it violates, each with the evidence."""
    exercised: frozenset[str]
    """The properties that it could have violated."""


class RestOfControlPlane(NamedTuple):
    """The judgement of a state at rest."""

    violations: list[tuple[str, str]]
    """The properties that it violates, each with the evidence."""
    is_exercised: bool
    """Whether there is anything to judge: a broker is alive."""


NO_WRITE = WriteJudgement((), frozenset())
"""The judgement of a step that writes nothing of the control plane."""


class ControlPlane:
    """The control plane of one cluster of a plan."""

    def __init__(self, plan: Plan, cluster: ClusterPlan) -> None:
        self.plan = plan
        self.cluster = cluster
        self._judged = lru_cache(MOST_WRITES)(self._judge)

    # --- writes ------------------------------------------------------------------------

    def judge_write(
        self, raised: tuple[int, ...], before: Nodes, after: Nodes, changed: tuple[str, ...]
    ) -> WriteJudgement:
        """Judge the changes of one step of a process.

        `raised` has the epochs that the process has raised itself, this step included.
        """
        written = [path for path in changed if path in after]
        if not any(paths.parse_state(path) or path == paths.CONTROLLER_EPOCH for path in written):
            return NO_WRITE
        topics = {path for path in before if path.startswith(f"{paths.TOPICS}/")}
        known = {paths.CONTROLLER_EPOCH, *topics}.intersection(before)
        return self._judged(
            raised,
            tuple(sorted((path, before[path].data) for path in known)),
            tuple((path, after[path].data) for path in written),
        )

    def _judge(
        self,
        raised: tuple[int, ...],
        before: tuple[tuple[str, bytes | None], ...],
        written: tuple[tuple[str, bytes | None], ...],
    ) -> WriteJudgement:
        judge = ClusterJudge(self.cluster, Evidence(OF_WRITES))
        for path, data in before:
            judge.written(path, WRITER, _text(data), 0)
        others = dict.fromkeys(range((judge.registry.epoch or 0) + 1), ANOTHER)
        judge.registry.raised_by = {**others, **dict.fromkeys(raised, WRITER)}
        judge.evidence = Evidence(OF_WRITES)
        for path, data in written:
            judge.written(path, WRITER, _text(data), 0)
        found = list(judge.evidence.findings())
        return WriteJudgement(
            tuple(violated(found)),
            frozenset(finding.claim.name for finding in found if finding.exercised),
        )

    # --- at rest -----------------------------------------------------------------------

    def judge_rest(
        self, actors: Actors, values: Mapping[str, ActorState], nodes: Nodes
    ) -> RestOfControlPlane:
        """Judge a state at rest."""
        evidence = Evidence((*OF_WRITES, *AT_REST))
        judge = ClusterJudge(self.cluster, evidence)
        for path, znode in sorted(nodes.items()):
            if path.startswith(WRITTEN_BY_BROKERS):
                judge.written(path, actors.name_of.get(znode.owner, ""), _text(znode.data), 0)
        for name, epoch in _acting(actors.members, values):
            judge.failed_over(name, epoch)
        judge.judge_rest(History(self.plan))
        found = [finding for finding in evidence.findings() if finding.claim in AT_REST]
        return RestOfControlPlane(violated(found), any(finding.exercised for finding in found))


def violated(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return each property that is violated, with the evidence."""
    return [
        (finding.claim.name, finding.evidence)
        for finding in findings
        if finding.verdict is Verdict.VIOLATED
    ]


def _acting(members: list[Member], values: Mapping[str, ActorState]) -> Iterator[tuple[str, int]]:
    """Yield the brokers that act as the controller, each with its epoch."""
    for member in members:
        value = values[member.name]
        if value.phase == "running":
            state = member.moves.process.compiled.nodes[value.node].state
            if isinstance(state, ControllingBrokerState) and state.controller.context is not None:
                yield member.name, state.controller.context.epoch


def registry_in_words(actors: Actors, nodes: Nodes) -> dict[str, str]:
    """Return what `/controller`, its epoch and the states of partitions say, by their names."""
    said = {}
    if paths.CONTROLLER in nodes:
        said["controller"] = actors.name_of.get(nodes[paths.CONTROLLER].owner, UNKNOWN_OWNER)
    if paths.CONTROLLER_EPOCH in nodes:
        said["controller epoch"] = _text(nodes[paths.CONTROLLER_EPOCH].data)
    for path, znode in sorted(nodes.items()):
        partition = paths.parse_state(path)
        if partition is not None:
            state = PartitionState.decode(path, znode.data)
            leader = "no leader" if state.leader == NO_LEADER else f"leader {state.leader}"
            isr = ", ".join(map(str, state.isr))
            said[str(partition)] = f"{leader} in epoch {state.leader_epoch}, ISR [{isr}]"
    return said


class BrokerTransitions(Transitions):
    """The steps of a broker that can be the controller: its state keeps the epochs it raises."""

    def all(self, tree: int, state: ActorState, *, with_faults: bool = True) -> Iterator[Step]:
        """Yield every step."""
        for step in super().all(tree, state, with_faults=with_faults):
            nodes = self.service.trees[step.tree].nodes
            is_raised = paths.CONTROLLER_EPOCH in changed_by(step)
            yield _with_raised(step, nodes) if is_raised else step


def changed_by(step: Step) -> tuple[str, ...]:
    """Return the paths that a step has created, changed or deleted."""
    return tuple(change.path for change in step.broadcast if isinstance(change, Change))


def _with_raised(step: Step, nodes: Nodes) -> Step:
    path = paths.CONTROLLER_EPOCH
    if path not in nodes:
        return step
    epoch = ControllerEpoch.decode(path, nodes[path].data).epoch
    epochs = sorted({*step.state.raised_epochs, epoch})
    return step._replace(state=replace(step.state, raised_epochs=tuple(epochs)))


def _text(data: bytes | None) -> str:
    return (data or b"").decode()
