"""Where members begin and cease to fetch, held against the offsets that are committed."""

from __future__ import annotations

from dataclasses import dataclass

from bench.mutation.account import Account

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.variants import OffsetMeaning, Step
from watchkeeper.model.plan.plan import ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.properties.history import Claim, History
from watchkeeper.model.registry.paths import parse_offset, parse_owner
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

SLACK_US = 1_000_000
"""How much later than its timer a commit may take effect."""
QUIET = frozenset({EventKind.FETCHED, EventKind.WAITING})
"""What a member does while its timer runs; anything else sets the timer anew."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A member ceased to fetch a partition."""

    node: str
    session: int
    at: int
    was_in_order: bool
    """Whether it had a connection, and its process ran."""


class Starts(Account):
    """Offsets: `start`, `handover`, `commit`, `commit is late`.

    Only groups whose members commit by themselves, and whose logs hold no messages: the ledger
    judges the others.
    """

    def __init__(self, plan: Plan, history: History) -> None:
        super().__init__(plan, history)
        self.stops: dict[Claim, Stop] = {}
        """The last stop of each partition that no member has fetched since."""
        self.positions: dict[tuple[str, Partition], dict[int, int]] = {}
        """Member and partition -> each of its positions, and since when it had it."""
        self.active_us: dict[str, int] = {}
        """Member -> when it did something last."""

    def take(self, event: Event) -> None:
        """Follow a fetch or a commit."""
        if event.kind == EventKind.APPLIED:
            self._applied(event)
        elif event.node not in self.members or not self._is_judged(event.node):
            return
        elif event.kind == EventKind.FETCHING:
            begins = event.detail["does"] == "begins"
            (self._begins if begins else self._ceases)(event)
        elif event.kind == EventKind.FETCHED:
            self._moved(event)
        elif event.kind == EventKind.ENDED and event.detail.get("why") == "left":
            for claim in self.stops:
                self._releases(event.node, claim)
        if event.kind not in QUIET:
            self.active_us[event.node] = event.t_us

    def _is_judged(self, node: str) -> bool:
        group, member = self.members[node]
        if self.plan.cluster(group.cluster).storage is not None or group.is_committed_by_hand:
            return False
        return member.settings.auto_commit

    def _begins(self, event: Event) -> None:
        """Compare the first offset with the committed one.

        A member that does not own the partition yet may read an old one, so only members that
        claim first are judged.
        """
        partition, at = Partition(event.topic, event.partition), event.detail["at"]
        if at >= 0:
            self.positions.setdefault((event.node, partition), {})[at] = event.t_us
        claim = (event.group, partition)
        before = self.stops.pop(claim, None)
        may_be = {self.history.offsets.get(claim, at)}
        if before is not None and before.node == event.node:
            may_be.add(before.at)
        _, member = self.members[event.node]
        if member.variant.fenced and at >= 0 and at not in may_be:
            self.found.add("start")

    def _ceases(self, event: Event) -> None:
        state = self.history.node(event.node)
        in_order = state.is_alive and state.is_connected and not state.is_paused
        claim = (event.group, Partition(event.topic, event.partition))
        self.stops[claim] = Stop(event.node, state.session, event.detail["at"], in_order)

    def _releases(self, node: str, claim: Claim) -> None:
        """Compare what a member has committed with where it stopped, once it lets go."""
        stop = self.stops.get(claim)
        if stop is None or stop.node != node or not stop.was_in_order or stop.at <= 0:
            return
        if stop.session != self.history.node(node).session:
            return
        if Step.COMMIT not in self.members[node][1].variant.steps:
            return
        if self.history.offsets.get(claim) != stop.at - self._reread(node):
            self.found.add("handover")

    def _reread(self, node: str) -> int:
        """How many messages a member reads again: the pages commit the last one consumed."""
        _, member = self.members[node]
        return 0 if member.variant.offset_means is OffsetMeaning.NEXT else 1

    def _moved(self, event: Event) -> None:
        for place, moved in event.detail["moved"].items():
            topic, _, name = place.rpartition("/")
            known = self.positions.setdefault((event.node, Partition(topic, name)), {})
            for at in moved:
                known.setdefault(at, event.t_us)

    def _applied(self, event: Event) -> None:
        node = str(event.detail.get("by", ""))
        if node not in self.members or not self._is_judged(node):
            return
        for did in event.detail["did"]:
            owner, claim = parse_owner(did[1]), parse_offset(did[1])
            if owner is not None and did[0] == "deleted":
                self._releases(node, owner)
            elif claim is not None and did[0] != "deleted":
                known = self.positions.get((node, claim[1]), {})
                # Where a log ends is known to no event until the first message after it.
                if known and int(did[3]) + self._reread(node) not in known:
                    self.found.add("commit")

    def end(self, at_us: int) -> None:
        """Compare the committed offsets with the positions when the timer was due."""
        for state in self.history.nodes.values():
            lives = state.is_alive and state.is_connected and not state.is_abandoned
            if state.name in self.members and lives and self._is_judged(state.name):
                for partition in state.fetching:
                    self._is_late(*self.members[state.name], partition, at_us)

    def _is_late(
        self, group: GroupPlan, member: ConsumerPlan, partition: Partition, at_us: int
    ) -> None:
        """Whether the timer has run out since a member did anything, and nothing is committed."""
        interval_us = member.settings.auto_commit_interval_ms * 1_000
        fires_us = self.active_us.get(member.node, 0) + interval_us
        if at_us < fires_us + SLACK_US:
            return
        known = self.positions.get((member.node, partition), {})
        due = max((at for at, since_us in known.items() if since_us < fires_us), default=0)
        committed = self.history.offsets.get((group.name, partition), 0)
        if committed + self._reread(member.node) < due:
            self.found.add("commit is late")
