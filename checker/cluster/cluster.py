"""A cluster of a plan as a system to search.

The actors are the consumers, the brokers and, in the 0.8 layout, the administrator; the
shared value is the tree of znodes. Brokers and administrator are quiescent when the search
begins: they have started one after the other, without a fault. Brokers that may join during
the search are absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from immutables import Map

from watchkeeper.checker.actors.actor import Actor
from watchkeeper.checker.actors.actor_state import ActorState, ProcessChange
from watchkeeper.checker.actors.actors import Actors, Member
from watchkeeper.checker.actors.compile import CompiledProgram
from watchkeeper.checker.actors.transitions import Step, Transitions
from watchkeeper.checker.actors.znode_store import ZnodeStore
from watchkeeper.checker.cluster.attempts import attempts_in_vain, retried_znode
from watchkeeper.checker.cluster.control_plane import (
    NO_WRITE,
    OF_WRITES,
    BrokerTransitions,
    ControlPlane,
    WriteJudgement,
    changed_by,
)
from watchkeeper.checker.cluster.initial import CannotExplore, InitialStep, initial_steps
from watchkeeper.checker.cluster.terminal import ANSWERED, RestJudgement, TerminalJudge
from watchkeeper.checker.cluster.topic_changes import topic_changes
from watchkeeper.checker.reduction.abstraction import canonical
from watchkeeper.checker.reduction.footprints import (
    EVERYWHERE,
    Footprints,
    is_about_to_learn_expiry,
)
from watchkeeper.checker.state_space.system import FREE, IDLE, Budget, Move
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.actor.program import Program
from watchkeeper.model.broker.registration import BrokerState
from watchkeeper.model.clients.compositions.kafka_07 import SOUND, clients_of
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.plan.bounds import (
    BROKER_JOIN,
    TOPIC_CHANGES,
    Bounds,
    FaultKind,
    late_brokers,
)
from watchkeeper.model.plan.plan import ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.programs import administrator_program, broker_program, consumer_program
from watchkeeper.model.properties.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.zookeeper.tree import Change
from watchkeeper.model.zookeeper.znode import Znode

MOST_BITS = 64
SESSIONS_EACH = 8
BREAKS = (
    FaultKind.DISCONNECT,
    FaultKind.LATE_REQUEST,
    FaultKind.LOST_REQUEST,
    FaultKind.LOST_REPLY,
)
"""The faults that break a connection."""


class ClusterSystem(Actors):
    """One cluster of a plan, with its groups."""

    def __init__(self, plan: Plan, bounds: Bounds, *, folds: bool = True) -> None:
        if len(plan.clusters) != 1:
            raise CannotExplore("a search takes one cluster; this scenario has several")
        if plan.keeps_offsets_in_kafka:
            raise CannotExplore(
                "no search has brokers that coordinate groups, and a member here keeps its "
                "offsets in Kafka; leave `offsets.storage` out, or search a migration with "
                "`watchkeeper migrate-offsets`"
            )
        self.plan = plan
        self.bounds = bounds
        self.folds = folds
        self.cluster = plan.clusters[0]
        has_controller = self.cluster.controller is not None
        self.control_plane = ControlPlane(plan, self.cluster) if has_controller else None
        """The judge of its control plane; None where an administrator writes the leaders."""
        self._brokers_stay = not (
            has_controller or bounds.of_process(is_broker=True) or bounds.changes_topics
        )
        self.topic_changes = topic_changes(plan, self.cluster, bounds.faults)
        self._shared = {name: process for process in plan.processes for name in process.members}
        """Member -> the process in which it runs with others."""
        self.shared_ids = plan.shared_ids()
        """Consumer -> its registration, where another consumer has the same id."""
        self.regions = Footprints(
            messages=bounds.messages,
            fences_may_be_late=_may_be_late(bounds),
            brokers_rest=not has_controller,
        )
        count = len(self.cluster.brokers) + sum(len(group.consumers) for group in plan.groups) + 1
        self.service = ZnodeStore(
            range(1, 1 + SESSIONS_EACH * count),
            _is_offset,
            lists_in_reverse=lambda session: (session - 1) // SESSIONS_EACH % 2 == 1,
        )
        super().__init__(list(self._members()), Budget(bounds.faults, bounds.together))
        of_writes = [claim.name for claim in OF_WRITES if has_controller]
        self.exercised_by_moves = (OWN_NODES.name, MONOTONE.name, ANSWERED.name, *of_writes)
        self._claims: dict[tuple[str, Partition], int] = {}
        self._terminal_judge = TerminalJudge(plan, self.topic_changes, self.control_plane, self)
        self._judged: dict[tuple[int, ...], RestJudgement] = {}

    # --- who there is ------------------------------------------------------------------

    def _members(self) -> Iterator[Member]:
        number = 0

        def sessions() -> tuple[int, ...]:
            nonlocal number
            number += 1
            return tuple(range(1 + SESSIONS_EACH * (number - 1), 1 + SESSIONS_EACH * number))

        for group in self.plan.groups:
            joins = self.bounds.faults.get(FaultKind.JOIN, 0)
            later = {consumer.node for consumer in group.consumers if consumer.starts_us is None}
            first = [consumer for consumer in group.consumers if consumer.node not in later]
            late = max(joins - len(later), 0)
            later |= {consumer.node for consumer in first[len(first) - late :]}
            for consumer in group.consumers:
                yield self._consumer(group, consumer, sessions(), consumer.node not in later)
        joining = self._joining_brokers()
        for broker in self.cluster.brokers:
            on_disk = {
                topic.name: dict(topic.by_broker)[broker.broker_id]
                for topic in self.topic_changes.initial_topics
                if broker.broker_id in dict(topic.by_broker)
            }
            program = broker_program(self.cluster, broker, on_disk)
            faults = self.bounds.of_process(is_broker=True)
            changes = self.topic_changes.for_broker(broker.broker_id)
            joins = broker.node in joining
            member = self._actor(
                broker.node,
                program,
                sessions(),
                faults,
                resends=True,
                changes=changes,
                starts_later=joins,
            )
            member.starts_first = not joins
            yield member
        if self.cluster.layout == "0.8":
            homes = {
                topic.name: TopicAssignment(topic.replicas)
                for topic in self.topic_changes.initial_topics
            }
            program = administrator_program(self.cluster, "administrator", homes)
            changes = self.topic_changes.for_administrator()
            yield self._actor(
                "administrator", program, sessions(), frozenset(), resends=False, changes=changes
            )

    def _joining_brokers(self) -> set[str]:
        """The brokers that may join during the search: the late ones, then the last ones."""
        joins = self.bounds.faults.get(BROKER_JOIN, 0)
        late = late_brokers(self.cluster) if joins else []
        first = [broker.node for broker in self.cluster.brokers if broker.node not in late]
        return {*late, *first[max(len(first) - max(joins - len(late), 0), 0) :]}

    def _consumer(
        self, group: GroupPlan, plan: ConsumerPlan, sessions: tuple[int, ...], starts_first: bool
    ) -> Member:
        program = consumer_program(self.cluster, group.name, plan, life=1, new_id=False)
        faults = self.bounds.of_process(is_broker=False)
        if starts_first:
            faults -= {FaultKind.JOIN}
        member = self._actor(
            plan.node,
            program,
            sessions,
            faults,
            resends=plan.variant.client_resends_watches,
            messages=self.bounds.messages,
            commits_by_hand=commits_by_hand(group, plan.variant),
        )
        member.group, member.starts_first = group, starts_first
        return member

    def _actor(
        self,
        name: str,
        program: Program,
        sessions: tuple[int, ...],
        faults: frozenset[FaultKind],
        *,
        resends: bool,
        messages: int = 0,
        commits_by_hand: bool = False,
        changes: Mapping[FaultKind, Command] | None = None,
        starts_later: bool = False,
    ) -> Member:
        process = Actor(
            name,
            CompiledProgram(program, name),
            sessions,
            state_after=_with_order,
            commits_by_hand=commits_by_hand,
            starts_later=starts_later,
            keeps_failures=True,
        )
        transitions = Transitions if self.control_plane is None else BrokerTransitions
        moves = transitions(
            process,
            self.service,
            faults,
            resends=resends,
            messages=messages,
            is_constant=self._is_constant if self.folds else None,
            topic_changes=changes,
            shared=self._shared.get(name),
        )
        return Member(name, moves, None, True)

    def _is_constant(self, path: str) -> bool:
        """Whether no process writes a path during the search."""
        if path.startswith("/brokers/"):
            return self._brokers_stay
        return _is_offset(path) and not self.bounds.messages

    # --- the beginning -----------------------------------------------------------------

    def initial(self) -> tuple[int, ...]:
        """Return the state in which the search begins."""
        tree, states = self.service.first, [ActorState() for _ in self.members]
        for done in self.initial_steps():
            tree, states = done.tree_after, done.after
        numbers = [
            member.local_states.of(actor_state)
            for member, actor_state in zip(self.members, states, strict=True)
        ]
        return (tree, *numbers)

    @property
    def initial_plan(self) -> Plan:
        """The plan with the topics that exist when the search begins."""
        cluster = replace(self.cluster, topics=self.topic_changes.initial_topics)
        return replace(self.plan, clusters=(cluster,))

    def initial_steps(self) -> Iterator[InitialStep]:
        """Yield the steps before the search begins."""
        is_quiescent = self.bounds.begin == "settled"
        return initial_steps(
            self.members,
            self.service.first,
            is_quiescent=is_quiescent,
            brokers_rest=self.control_plane is None,
        )

    def kind_of(self, member: Member, step: Step) -> int:
        """Return the kind of a step; brokers have a budget of their own."""
        if not step.fault:
            return IDLE if step.is_idle else FREE
        is_common = member.group is not None or step.fault in TOPIC_CHANGES
        return self.budget.kind(step.fault if is_common else f"broker_{step.fault}")

    def moves(
        self, actor: int, shared: int, actor_state: int, *, with_faults: bool = True
    ) -> Iterator[Move]:
        """Yield the moves of an actor; attempts to create a znode that is in use are idle."""
        member = self.members[actor]
        nodes = self.service.trees[shared].nodes
        is_idle = attempts_in_vain(member, member.local_states[actor_state], nodes)
        for move in super().moves(actor, shared, actor_state, with_faults=with_faults):
            yield move._replace(kind=IDLE) if is_idle and _is_attempt(move) else move

    # --- violations --------------------------------------------------------------------

    def step_violation(self, actor_state: ActorState, tree: int, step: Step) -> str:
        """Return the property that a step itself violates; empty for none."""
        of_control_plane = self.written_by(tree, step).violations
        if of_control_plane:
            return of_control_plane[0][0]
        if not isinstance(step.about, Operation) or not step.broadcast:
            return ""
        if any(owner and owner not in _own(actor_state) for _, owner in step.deleted):
            return OWN_NODES.name
        is_lower = any(after < before for before, after in self._commits_over(tree, step))
        return MONOTONE.name if is_lower else ""

    def exercises(self, tree: int, step: Step) -> int:
        """Return which of `exercised_by_moves` a step exercises, a bit each."""
        exercised = set(self.written_by(tree, step).exercised)
        if step.does is StepKind.READ_MESSAGE and step.state.awaits:
            exercised.add(ANSWERED.name)
        if isinstance(step.about, Operation) and step.broadcast:
            if any(owner for _, owner in step.deleted):
                exercised.add(OWN_NODES.name)
            if next(self._commits_over(tree, step), None) is not None:
                exercised.add(MONOTONE.name)
        return sum(
            1 << at for at, name in enumerate(self.exercised_by_moves) if name in exercised
        )

    def written_by(self, tree: int, step: Step) -> WriteJudgement:
        """Judge what a step writes of the control plane."""
        if self.control_plane is None or not step.broadcast:
            return NO_WRITE
        before, after = self.service.trees[tree].nodes, self.service.trees[step.tree].nodes
        raised = step.state.raised_epochs
        return self.control_plane.judge_write(raised, before, after, changed_by(step))

    def _commits_over(self, tree: int, step: Step) -> Iterator[tuple[int, int]]:
        """Yield the offset before and after each commit of a step over an earlier offset."""
        before, after = self.service.trees[tree].nodes, self.service.trees[step.tree].nodes
        written = (change.path for change in step.broadcast if isinstance(change, Change))
        for path in filter(_is_offset, written):
            if path in before and path in after:
                yield _number(before[path]), _number(after[path])

    def pair_violation(self, actor: int, shared: int, actor_state: int) -> str:
        """Return the violation of a live member that fetches what it does not claim."""
        member = self.members[actor]
        value = member.local_states[actor_state]
        if member.group is None or not value.is_alive:
            return ""
        has_all = all(
            self._has_claimed(member.group, shared, value, fetch.partition)
            for fetch in value.fetching
        )
        return "" if has_all else TRUTHFUL.name

    def _has_claimed(
        self, group: GroupPlan, tree: int, actor_state: ActorState, partition: Partition
    ) -> bool:
        """Whether the claim on a partition belongs to the current session of a member."""
        claim = self.service.trees[tree].nodes.get(paths.owner(group.name, partition))
        return claim is not None and claim.owner == actor_state.session

    def exclusive(self, actor: int, actor_state: int) -> int:
        """Return a bit for each partition that the member fetches with a live session."""
        member = self.members[actor]
        value = member.local_states[actor_state]
        if member.group is None or not (value.is_alive or self.plan.strict_ownership):
            return 0
        bits = 0
        for fetch in value.fetching:
            claim = (member.group.name, fetch.partition)
            bit = self._claims.setdefault(claim, len(self._claims))
            if bit >= MOST_BITS:
                raise CannotExplore(f"a search takes at most {MOST_BITS} partitions")
            bits |= 1 << bit
        return bits

    # --- reduction ---------------------------------------------------------------------

    def reads_from(self, actor: int, actor_state: int) -> int:
        """Return the regions that the next step of a process reads; 0 where it does more."""
        member = self.members[actor]
        if retried_znode(member, member.local_states[actor_state]):
            return 0  # it may be idle, and an idle move cannot stand for those of the others
        value = member.local_states[actor_state]
        return self.regions.reads_from(member.moves.process, value)

    def may_write(self, actor: int, actor_state: int) -> int:
        """Return the regions that a process may still write."""
        member = self.members[actor]
        is_consumer = member.group is not None
        value = member.local_states[actor_state]
        return self.regions.may_write(member.moves.process, value, is_consumer=is_consumer)

    def leftover_writes(self, actor: int, actor_state: int) -> int:
        """Return the regions that late requests and orphaned sessions may write."""
        return self.regions.leftover_writes(self.members[actor].local_states[actor_state])

    def is_private(self, actor: int, actor_state: int) -> int:
        """Whether a process is about to learn that its session is dead."""
        member = self.members[actor]
        # The end of a process that it shares concerns the others too, whatever it has learned.
        if self.plan.strict_ownership or member.name in self._shared:
            return 0
        return int(
            is_about_to_learn_expiry(member.moves.process, member.local_states[actor_state])
        )

    def canonical(self, actor: int, actor_state: int) -> int:
        """Return the process that represents this one once no more faults can come."""
        member = self.members[actor]
        return member.local_states.of(
            canonical(member.moves.process, member.local_states[actor_state])
        )

    def written_regions(self, broadcast: int) -> int:
        """Return the regions of a broadcast."""
        changes = self._broadcasts[broadcast]
        if any(isinstance(change, ProcessChange) for change in changes):
            return EVERYWHERE
        return self.regions.of_changes(changes)

    def exclusion_violation(self, state: tuple[int, ...]) -> str:
        """Return which exclusion is violated: with live sessions only, or with a zombie's too."""
        fetched: set[tuple[str, Partition]] = set()
        for member, number in zip(self.members, state[1:], strict=False):
            actor_state = member.local_states[number]
            if member.group is not None and actor_state.is_alive:
                for fetch in actor_state.fetching:
                    claim = (member.group.name, fetch.partition)
                    if claim in fetched:
                        return SINGLE.name
                    fetched.add(claim)
        return STRICT.name

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """Return the property that a terminal state violates; empty for none."""
        return self._at_rest(state).violation

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """Whether a group has a member and a partition for it in a terminal state."""
        return self._at_rest(state).is_exercised

    def _at_rest(self, state: tuple[int, ...]) -> RestJudgement:
        # Without changes of topics and shared ids, it follows from the processes alone.
        follows = not (self.topic_changes.is_any or self.shared_ids or self.control_plane)
        key = state[1:] if follows else state
        judged = self._judged.get(key)
        if judged is None:
            judged = self._judged[key] = self._terminal_judge.judge(
                self.values(state), self._nodes(state)
            )
        return judged

    def _nodes(self, state: tuple[int, ...]) -> Map[str, Znode]:
        return self.service.trees[state[0]].nodes

    def terminal_findings(self, state: tuple[int, ...]) -> list[tuple[str, str]]:
        """Return every property that a terminal state violates, with the evidence."""
        return self._terminal_judge.findings(self.values(state), self._nodes(state))

    def is_earlier_claim(self, actor: int, state: tuple[int, ...], partition: Partition) -> bool:
        """Whether the claim on a partition does not belong to the current session of a member."""
        member = self.members[actor]
        assert member.group is not None, "only members of a group claim partitions"
        actor_state = member.local_states[state[1 + actor]]
        return not self._has_claimed(member.group, state[0], actor_state, partition)


def _is_attempt(move: Move) -> bool:
    return move.label is StepKind.REPLY and move.kind == FREE


def _with_order(state: Any, order: Command) -> Any:
    """Return the first state of a broker whose disk an order of an earlier life has changed."""
    return state if not isinstance(state, BrokerState) else state.after_command(order)


def commits_by_hand(group: GroupPlan, variant: Variant) -> bool:
    """Whether the application of a member orders its commits.

    That of Kafka 0.7.2 commits beside the member, in a task of its own, which is not explored.
    """
    return group.is_committed_by_hand and clients_of(variant) is SOUND


def _may_be_late(bounds: Bounds) -> bool:
    """Whether a write that raises a fence can be late: that takes a second broken connection."""
    step_violation = sum(bounds.faults.get(kind, 0) for kind in BREAKS)
    return bounds.faults.get(FaultKind.LATE_REQUEST, 0) > 0 and step_violation > 1


def _own(actor_state: ActorState) -> tuple[int, ...]:
    return (actor_state.session, *actor_state.orphans)


def _number(znode: Znode) -> int:
    return int(znode.data or b"0")


def _is_offset(path: str) -> bool:
    return paths.parse_offset(path) is not None
