"""Judges of what must hold at rest: cover, consensus and balance."""

from __future__ import annotations

from dataclasses import dataclass, field

from model.asks import Partition
from model.filters import topic_filter
from model.history import History, NodeState
from model.ownership import First
from model.plan import ConsumerPlan, GroupPlan, Plan
from model.subscriptions import Subscription
from model.verdicts import Finding, Property, Verdict, counted, seconds

COVER = Property(
    "full cover",
    "at rest",
    "every partition whose broker is alive is fetched by exactly one member, if the group has "
    "a live stream for its topic",
)
CONSENSUS = Property(
    "consensus",
    "at rest",
    "all members of a group computed the same assignment from the same view",
)
BALANCE = Property(
    "balance",
    "at rest",
    "the streams of a topic differ by at most one partition, or as the assignor declares, and "
    "its connections to brokers lie within their bounds",
)


@dataclass(slots=True)
class CalmJudge:
    """Looks at every group each time it has come to rest."""

    plan: Plan
    cover: First = field(default_factory=First)
    consensus: First = field(default_factory=First)
    balance: First = field(default_factory=First)
    rests: int = 0
    partitions: int = 0
    """How many partitions were looked at, over all rests."""
    widest: int = 0
    """The largest difference between two streams that was seen."""
    connections: list[str] = field(default_factory=list)

    def look(self, history: History, group: GroupPlan) -> None:
        """Judge one group, which is at rest."""
        self.rests += 1
        live = [member for member in group.consumers if history.node(member.node).is_alive]
        for topic, partitions in self._topics(history, group).items():
            takers = [member for member in live if streams_of(member, topic) > 0]
            if takers:
                self.partitions += len(partitions)
                covered = self._look_at_cover(history, group, partitions)
                self._look_at_consensus(history, takers, topic)
                if covered:
                    self._look_at_balance(history, group, takers, topic, partitions)

    def _topics(self, history: History, group: GroupPlan) -> dict[str, list[Partition]]:
        """The partitions that brokers of the group's cluster serve now, by topic."""
        brokers = {broker.node for broker in self.plan.cluster(group.cluster).brokers}
        found: dict[str, list[Partition]] = {}
        for partition, servers in history.serving.items():
            if not brokers.isdisjoint(servers):
                found.setdefault(partition.topic, []).append(partition)
        return found

    # --- cover -------------------------------------------------------------------------

    def _look_at_cover(
        self, history: History, group: GroupPlan, partitions: list[Partition]
    ) -> bool:
        wrong = []
        for partition in partitions:
            fetchers = sorted(history.fetchers.get((group.name, partition), {}))
            if len(fetchers) != 1:
                wrong.append(f"{partition} ({' and '.join(fetchers) or 'nobody'})")
        if wrong:
            self.cover.note(
                history.now_us,
                f"at rest at {seconds(history.now_us)}, {len(wrong)} of {len(partitions)} "
                f"partitions were not fetched by exactly one member: {_some(wrong)}",
            )
        return not wrong

    # --- consensus ---------------------------------------------------------------------

    def _look_at_consensus(
        self, history: History, takers: list[ConsumerPlan], topic: str
    ) -> None:
        plans = {member.node: history.node(member.node).plans.get(topic) for member in takers}
        different = {plan: name for name, plan in reversed(plans.items())}
        if len(different) > 1:
            names = sorted(different.values())
            self.consensus.note(
                history.now_us,
                f"at rest at {seconds(history.now_us)}, {_and(names)} had decided "
                f"differently about {topic}",
            )

    # --- balance -----------------------------------------------------------------------

    def _look_at_balance(
        self,
        history: History,
        group: GroupPlan,
        takers: list[ConsumerPlan],
        topic: str,
        partitions: list[Partition],
    ) -> None:
        deals_over_topics = any(
            member.settings.assignor.startswith("roundrobin") and member.variant.assignor is None
            for member in takers
        )
        counts = _stream_counts(history, takers, None if deals_over_topics else topic)
        spread = max(counts.values()) - min(counts.values())
        self.widest = max(self.widest, spread)
        if spread > 1 and not deals_over_topics:
            most = max(counts, key=lambda stream: counts[stream])
            least = min(counts, key=lambda stream: counts[stream])
            self.balance.note(
                history.now_us,
                f"at rest at {seconds(history.now_us)}, {_stream(most)} had {counts[most]} "
                f"partitions of {topic} and {_stream(least)} had {counts[least]}",
            )
        if self.plan.cluster(group.cluster).layout == "0.7" and not deals_over_topics:
            self._look_at_connections(history, takers, topic, partitions)

    def _look_at_connections(
        self,
        history: History,
        takers: list[ConsumerPlan],
        topic: str,
        partitions: list[Partition],
    ) -> None:
        """Partitions sorted by broker leave few members with two brokers: count them."""
        pairs = {
            (member.node, partition.name.split("-")[0])
            for member in takers
            for partition in history.node(member.node).fetching
            if partition.topic == topic
        }
        members = len({member for member, _ in pairs})
        brokers = len({partition.name.split("-")[0] for partition in partitions})
        least, most = max(members, brokers), members + brokers - 1
        self.connections.append(f"{len(pairs)} connections for {topic}, of {least} to {most}")
        if not least <= len(pairs) <= most:
            self.balance.note(
                history.now_us,
                f"at rest at {seconds(history.now_us)}, {members} members held {len(pairs)} "
                f"connections to {brokers} brokers of {topic}; expected {least} to {most}",
            )

    # --- the end -----------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        """What was found."""
        if not self.partitions:
            never = (
                "no group had a member and a partition for it while it was at rest"
                if self.rests
                else "no group ever came to rest while no fault was in force"
            )
            return [
                Finding(claim, Verdict.UNKNOWN, never) for claim in (COVER, CONSENSUS, BALANCE)
            ]
        times = f"{counted(self.rests, 'time')} a group was at rest"
        shares = f"{times}; streams differed by at most {self.widest}"
        if self.connections:
            shares = f"{shares}; at the end {self.connections[-1]}"
        return [
            self.cover.finding(COVER, f"{times}, each partition with one member"),
            self.consensus.finding(CONSENSUS, f"{times}, with one decision among its members"),
            self.balance.finding(BALANCE, shares),
        ]


def streams_of(member: ConsumerPlan, topic: str) -> int:
    """How many streams of a topic a member has."""
    wanted: Subscription = member.subscription
    if not wanted.is_filter:
        return dict(wanted.streams).get(topic, 0)
    hide = member.settings.exclude_internal_topics
    allowed = topic_filter(wanted).allows(topic, exclude_internal=hide)
    return wanted.filter_streams if allowed else 0


Stream = tuple[str, int]


def _stream_counts(
    history: History, takers: list[ConsumerPlan], topic: str | None
) -> dict[Stream, int]:
    """How many partitions each stream has, of one topic or of all."""
    counts: dict[Stream, int] = {}
    for member in takers:
        state: NodeState = history.node(member.node)
        wanted = (
            max((streams_of(member, one.topic) for one in state.fetching), default=1)
            if topic is None
            else streams_of(member, topic)
        )
        streams = 1 if member.variant.unit == "consumer" else wanted
        for stream in range(streams):
            counts[member.node, stream] = 0
        for partition, stream in state.fetching.items():
            if topic is None or partition.topic == topic:
                counts[member.node, stream] = counts.get((member.node, stream), 0) + 1
    return counts


def _stream(stream: Stream) -> str:
    return f"{stream[0]}-{stream[1]}"


def _some(items: list[str]) -> str:
    shown = ", ".join(items[:3])
    return shown if len(items) <= 3 else f"{shown} and {len(items) - 3} more"


def _and(names: list[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
