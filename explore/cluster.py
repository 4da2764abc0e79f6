"""A cluster of a plan as a system to be searched.

The actors are the consumers, the brokers and, in the 0.8 layout, the administrator; the
shared value is the tree of znodes. Brokers and administrator have come to rest before the
search begins, one after the other, without a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from explore.beginning import Begun, CannotExplore, beginning
from explore.local import Local
from explore.merging import merged
from explore.moves import Moves, Step
from explore.process import Process
from explore.processes import Member, Processes
from explore.regions import Regions, finds_out
from explore.rests import RestJudge
from explore.service import Service
from explore.system import FREE, IDLE, Budget
from explore.unfolding import Unfolding
from model import registry
from model.administrator import Administrator, administrator
from model.asks import Partition
from model.bounds import Bounds
from model.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from model.payloads import TopicAssignment
from model.plan import ConsumerPlan, GroupPlan, Plan
from model.program import Program
from model.programs import broker_program, consumer_program
from model.zookeeper.znodes import Znode

MOST_BITS = 64
SESSIONS_EACH = 8
BREAKS = ("disconnect", "ghost", "lost_request", "lost_reply")
"""The faults that break a connection."""


class ClusterSystem(Processes):
    """One cluster of a plan, with its groups."""

    def __init__(self, plan: Plan, bounds: Bounds, *, folds: bool = True) -> None:
        if len(plan.clusters) != 1:
            raise CannotExplore("a search takes one cluster; this scenario has several")
        self.plan = plan
        self.bounds = bounds
        self.folds = folds
        self._brokers_stay = not bounds.of_process(is_broker=True)
        self.cluster = plan.clusters[0]
        self.regions = Regions(messages=bounds.messages, fences_may_be_late=_may_be_late(bounds))
        count = len(self.cluster.brokers) + sum(len(one.consumers) for one in plan.groups) + 1
        self.service = Service(range(1, 1 + SESSIONS_EACH * count), _is_offset)
        super().__init__(list(self._members()), Budget(bounds.faults, bounds.together))
        self._claims: dict[tuple[str, Partition], int] = {}
        self._rests = RestJudge(plan)
        self._judged: dict[tuple[int, ...], str] = {}

    # --- who there is ------------------------------------------------------------------

    def _members(self) -> Iterator[Member]:
        number = 0

        def sessions() -> tuple[int, ...]:
            nonlocal number
            number += 1
            return tuple(range(1 + SESSIONS_EACH * (number - 1), 1 + SESSIONS_EACH * number))

        for group in self.plan.groups:
            joins = self.bounds.faults.get("join", 0)
            later = {one.node for one in group.consumers if one.starts_us is None}
            first = [one for one in group.consumers if one.node not in later]
            late = max(joins - len(later), 0)
            later |= {one.node for one in first[len(first) - late :]}
            for consumer in group.consumers:
                yield self._consumer(group, consumer, sessions(), consumer.node not in later)
        for broker in self.cluster.brokers:
            on_disk = {
                topic.name: dict(topic.by_broker)[broker.broker_id]
                for topic in self.cluster.topics
                if broker.broker_id in dict(topic.by_broker)
            }
            program = broker_program(self.cluster, broker, on_disk)
            faults = self.bounds.of_process(is_broker=True)
            yield self._actor(broker.node, program, sessions(), faults, resends=True)
        if self.cluster.layout == "0.8":
            homes = tuple(
                sorted((one.name, TopicAssignment(one.replicas)) for one in self.cluster.topics)
            )
            program = administrator(Administrator("administrator", homes))
            yield self._actor("administrator", program, sessions(), frozenset(), resends=False)

    def _consumer(
        self, group: GroupPlan, plan: ConsumerPlan, sessions: tuple[int, ...], begins: bool
    ) -> Member:
        program = consumer_program(self.cluster, group.name, plan, life=1, new_id=False)
        faults = self.bounds.of_process(is_broker=False)
        if begins:
            faults -= {"join"}
        member = self._actor(
            plan.node,
            program,
            sessions,
            faults,
            resends=plan.variant.client_resends_watches,
            messages=self.bounds.messages,
        )
        member.group, member.begins = group, begins
        return member

    def _actor(
        self,
        name: str,
        program: Program,
        sessions: tuple[int, ...],
        faults: frozenset[str],
        *,
        resends: bool,
        messages: int = 0,
    ) -> Member:
        process = Process(name, Unfolding(program, name), sessions)
        moves = Moves(
            process,
            self.service,
            faults,
            resends=resends,
            messages=messages,
            is_settled=self._is_settled if self.folds else None,
        )
        return Member(name, moves, None, True)

    def _is_settled(self, path: str) -> bool:
        """Whether nobody writes there once the search has begun."""
        if path.startswith("/brokers/"):
            return self._brokers_stay
        return _is_offset(path) and not self.bounds.messages

    # --- the beginning -----------------------------------------------------------------

    def initial(self) -> tuple[int, ...]:
        """The registry with its brokers at rest, and the consumers that begin."""
        tree, locals_ = self.service.first, [Local() for _ in self.members]
        for done in self.beginning():
            tree, locals_ = done.tree_after, done.after
        numbers = [
            member.locals.of(local) for member, local in zip(self.members, locals_, strict=True)
        ]
        return (tree, *numbers)

    def beginning(self) -> Iterator[Begun]:
        """What has been done before the search begins."""
        is_settled = self.bounds.begin == "settled"
        return beginning(self.members, self.service.first, is_settled=is_settled)

    def kind_of(self, member: Member, step: Step) -> int:
        """The kind of a step; brokers have a budget of their own."""
        if not step.fault:
            return IDLE if step.is_idle else FREE
        return self.budget.kind(
            step.fault if member.group is not None else f"broker_{step.fault}"
        )

    # --- what is wrong -----------------------------------------------------------------

    def breaks(self, local: Local, tree: int, step: Step) -> str:
        """What is violated by a step itself."""
        if step.about is None or not step.cast:
            return ""
        if any(owner and owner not in _own(local) for _, owner in step.deleted):
            return OWN_NODES.name
        before, after = self.service.trees[tree].nodes, self.service.trees[step.tree].nodes
        for path in (change.path for change in step.cast if _is_offset(change.path)):
            if path in before and path in after and _number(after[path]) < _number(before[path]):
                return MONOTONE.name
        return ""

    def wrong(self, actor: int, shared: int, local: int) -> str:
        """Whether somebody fetches under a live session what that session has not claimed."""
        member = self.members[actor]
        value = member.locals[local]
        if member.group is None or not value.is_alive:
            return ""
        has_all = all(
            self._has_claimed(member.group, shared, value, one.partition)
            for one in value.fetching
        )
        return "" if has_all else TRUTHFUL.name

    def _has_claimed(
        self, group: GroupPlan, tree: int, local: Local, partition: Partition
    ) -> bool:
        """Whether the claim on a partition is that of the session a member has now."""
        claim = self.service.trees[tree].nodes.get(registry.owner(group.name, partition))
        return claim is not None and claim.owner == local.session

    def exclusive(self, actor: int, local: int) -> int:
        """A bit for each partition that is fetched under a live session."""
        member = self.members[actor]
        value = member.locals[local]
        if member.group is None or not (value.is_alive or self.plan.strict_ownership):
            return 0
        bits = 0
        for one in value.fetching:
            claim = (member.group.name, one.partition)
            bit = self._claims.setdefault(claim, len(self._claims))
            if bit >= MOST_BITS:
                raise CannotExplore(f"a search takes at most {MOST_BITS} partitions")
            bits |= 1 << bit
        return bits

    # --- what concerns nobody else -----------------------------------------------------

    def looks_at(self, actor: int, local: int) -> int:
        """The region in which a process is about to read, if it does nothing else."""
        member = self.members[actor]
        value = member.locals[local]
        return self.regions.looked_at(member.moves.process, value)

    def may_write(self, actor: int, local: int) -> int:
        """The regions to which a process may still write."""
        member = self.members[actor]
        is_consumer = member.group is not None
        value = member.locals[local]
        return self.regions.may_write(member.moves.process, value, is_consumer=is_consumer)

    def left_writes(self, actor: int, local: int) -> int:
        """The regions to which requests and sessions that were left behind may write."""
        return self.regions.left_writes(self.members[actor].locals[local])

    def is_private(self, actor: int, local: int) -> int:
        """Whether a process is about to find out that its session is dead."""
        member = self.members[actor]
        if self.plan.strict_ownership:
            return 0
        return int(finds_out(member.moves.process, member.locals[local]))

    def merged(self, actor: int, local: int) -> int:
        """The process that stands for this one once there are no more faults."""
        member = self.members[actor]
        return member.locals.of(merged(member.moves.process, member.locals[local]))

    def writes(self, cast: int) -> int:
        """The regions that these changes are in."""
        return self.regions.of_changes(self._casts[cast])

    def shared(self, state: tuple[int, ...]) -> str:
        """Whether those who fetch one partition are all alive, or one of them is a zombie."""
        fetched: set[tuple[str, Partition]] = set()
        for member, number in zip(self.members, state[1:], strict=False):
            local = member.locals[number]
            if member.group is not None and local.is_alive:
                for one in local.fetching:
                    claim = (member.group.name, one.partition)
                    if claim in fetched:
                        return SINGLE.name
                    fetched.add(claim)
        return STRICT.name

    def wrong_at_rest(self, state: tuple[int, ...]) -> str:
        """What is violated while nothing has to come any more."""
        key = state[1:]
        judged = self._judged.get(key)
        if judged is None:
            judged = self._judged[key] = self._rests.judge(self.values(state))
        return judged

    def findings_at_rest(self, state: tuple[int, ...]) -> list[tuple[str, str]]:
        """Every property that is violated in a state at rest, and how."""
        return self._rests.findings(self.values(state))

    def is_earlier_claim(self, actor: int, state: tuple[int, ...], partition: Partition) -> bool:
        """Whether the claim on a partition is not that of the session a member has now."""
        member = self.members[actor]
        assert member.group is not None, "only members of a group claim"
        local = member.locals[state[1 + actor]]
        return not self._has_claimed(member.group, state[0], local, partition)


def _may_be_late(bounds: Bounds) -> bool:
    """Whether a write that raised a fence can be left behind: a second break is needed."""
    breaks = sum(bounds.faults.get(kind, 0) for kind in BREAKS)
    return bounds.faults.get("ghost", 0) > 0 and breaks > 1


def _own(local: Local) -> tuple[int, ...]:
    return (local.session, *local.orphans)


def _number(znode: Znode) -> int:
    return int(znode.data or b"0")


def _is_offset(path: str) -> bool:
    return registry.parse_offset(path) is not None
