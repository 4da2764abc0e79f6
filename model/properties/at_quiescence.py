"""Judges of what must hold at rest: full cover, consensus, an agreed view, and balance."""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.plan.plan import ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.properties.history import History, NodeState
from watchkeeper.model.properties.ownership import First
from watchkeeper.model.properties.verdicts import (
    Finding,
    Property,
    Subject,
    counted,
    seconds,
    unexercised,
)
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.registry.topic_filter import topic_filter

AT_REST = "a group at rest with a member and a partition for it"

COVER = Property(
    "full cover",
    "at rest",
    "every partition whose broker is alive is fetched by exactly one member, if the group has "
    "a live stream for its topic and the registry has the topic",
    exercise=AT_REST,
)
CONSENSUS = Property(
    "consensus",
    "at rest",
    "no partition is in the shares of two members, as each of them computed its own",
    exercise=AT_REST,
)
AGREED = Property(
    "agreed view",
    "at rest",
    "all members of a group computed their shares from the same view, in the same order",
    exercise=AT_REST,
)
BALANCE = Property(
    "balance",
    "at rest",
    "the streams of a topic differ by at most one partition, or as the assignor declares, and "
    "its connections to brokers lie within their bounds",
    exercise=AT_REST,
)


@dataclass(slots=True)
class CalmJudge:
    """Judges every group each time it has come to rest."""

    plan: Plan
    cover: First = field(default_factory=First)
    consensus: First = field(default_factory=First)
    agreed: First = field(default_factory=First)
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
        live = [member for member in group.consumers if history.is_member(member.node)]
        for topic, partitions in self._topics(history, group).items():
            takers = [member for member in live if streams_of(member, topic) > 0]
            if takers:
                self.partitions += len(partitions)
                covered = self._look_at_cover(history, group, partitions)
                self._look_at_consensus(history, takers, topic)
                self._look_at_views(history, takers, topic)
                if covered:
                    self._look_at_balance(history, group, takers, topic, partitions)

    def _topics(self, history: History, group: GroupPlan) -> dict[str, list[Partition]]:
        """The partitions that brokers of the group's cluster serve now, by topic.

        A topic that was deleted from the registry is none, though brokers may still have it.
        """
        brokers = {broker.node for broker in self.plan.cluster(group.cluster).brokers}
        prefix = self.plan.prefix_of(group.cluster)
        found: dict[str, list[Partition]] = {}
        for partition, servers in history.serving.items():
            is_deleted = (prefix, partition.topic) in history.deleted_topics
            if not is_deleted and not brokers.isdisjoint(servers):
                found.setdefault(partition.topic, []).append(partition)
        return found

    # --- cover -------------------------------------------------------------------------

    def _look_at_cover(
        self, history: History, group: GroupPlan, partitions: list[Partition]
    ) -> bool:
        wrong, places = [], []
        without = False
        for partition in partitions:
            claim = (group.name, partition)
            fetchers = sorted(history.fetchers.get(claim, {}))
            if len(fetchers) != 1:
                owner = "" if fetchers else history.outlived_owner(claim)
                held = f"; the session of {owner} claims it" if owner else ""
                wrong.append(f"{partition} ({' and '.join(fetchers) or 'no member'}{held})")
                places.append(partition)
                without = without or not fetchers
        if wrong:
            outlived = [
                member.node
                for member in (group.consumers if without else ())
                if history.is_outlived(member.node)
            ]
            present = history.fetchers.get((group.name, places[0]), {})
            members = [one.node for one in group.consumers if history.is_member(one.node)]
            nodes = tuple(present or members)
            which = "no member" if without else "several members"
            shape = f"{which} of a group at rest fetch{'es' if without else ''} a partition"
            self.cover.note(
                history.now_us,
                f"{shape}, and the session of a member outlives its program"
                if outlived
                else shape,
                f"at rest at {seconds(history.now_us)}, {len(wrong)} of {len(partitions)} "
                f"partitions were not fetched by exactly one member: {_some(wrong)}"
                f"{_outlived(outlived)}",
                Subject(nodes, group.name, tuple(places), places[0].topic),
            )
        return not wrong

    # --- consensus ---------------------------------------------------------------------

    def _look_at_consensus(
        self, history: History, takers: list[ConsumerPlan], topic: str
    ) -> None:
        """Compare the shares: two members may see the same and deal it out differently."""
        owners: dict[str, list[str]] = {}
        for member in takers:
            for name in history.node(member.node).shares.get(topic, ()):
                owners.setdefault(name, []).append(member.node)
        shared = [
            f"{topic}/{name} ({_and(sorted(nodes))})"
            for name, nodes in sorted(owners.items())
            if len(nodes) > 1
        ]
        if shared:
            self.consensus.note(
                history.now_us,
                "a partition is in the shares of several members of a group at rest",
                f"at rest at {seconds(history.now_us)}, "
                f"{counted(len(shared), 'partition was', 'partitions were')} in the shares of "
                f"several members: {_some(shared)}",
                _about(
                    history, next(nodes for nodes in owners.values() if len(nodes) > 1), topic
                ),
            )

    def _look_at_views(self, history: History, takers: list[ConsumerPlan], topic: str) -> None:
        plans = {member.node: history.node(member.node).plans.get(topic) for member in takers}
        different = {plan: name for name, plan in reversed(plans.items())}
        if len(different) > 1:
            names = sorted(different.values())
            self.agreed.note(
                history.now_us,
                "members of a group at rest had different views",
                f"at rest at {seconds(history.now_us)}, {_and(names)} had computed their shares "
                f"of {topic} from different views",
                _about(history, names, topic),
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
                "two streams of a topic differ by more than one partition",
                f"at rest at {seconds(history.now_us)}, {_stream(most)} had {counts[most]} "
                f"partitions of {topic} and {_stream(least)} had {counts[least]}",
                _about(history, [most[0], least[0]], topic),
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
        """Count the members with two brokers: partitions sorted by broker leave few of them."""
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
                "the connections of a topic lie outside their bounds",
                f"at rest at {seconds(history.now_us)}, {members} members held {len(pairs)} "
                f"connections to {brokers} brokers of {topic}; expected {least} to {most}",
                _about(history, sorted({member for member, _ in pairs}), topic),
            )

    # --- the end -----------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        """The findings of every group."""
        if not self.partitions:
            reason = (
                "no group had a member and a partition for it while it was at rest"
                if self.rests
                else "no group ever came to rest while no fault was in force"
            )
            return [unexercised(claim, reason) for claim in (COVER, CONSENSUS, AGREED, BALANCE)]
        times = f"{counted(self.rests, 'time')} a group was at rest"
        shares = f"{times}; streams differed by at most {self.widest}"
        if self.connections:
            shares = f"{shares}; at the end {self.connections[-1]}"
        return [
            self.cover.finding(COVER, f"{times}, each partition with one member", self.rests),
            self.consensus.finding(CONSENSUS, f"{times}, no partition in two shares", self.rests),
            self.agreed.finding(AGREED, f"{times}, with one view among its members", self.rests),
            self.balance.finding(BALANCE, shares, self.rests),
        ]


def _about(history: History, names: list[str], topic: str) -> Subject:
    """The subject of a violation that is about the shares of some members."""
    return Subject(tuple(names), history.node(names[0]).group, topic=topic)


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
    """The number of partitions of each stream, of one topic or of all."""
    counts: dict[Stream, int] = {}
    for member in takers:
        state: NodeState = history.node(member.node)
        wanted = (
            max((streams_of(member, partition.topic) for partition in state.fetching), default=1)
            if topic is None
            else streams_of(member, topic)
        )
        streams = 1 if member.variant.unit is Unit.CONSUMER else wanted
        for stream in range(streams):
            counts[member.node, stream] = 0
        for partition, stream in state.fetching.items():
            if topic is None or partition.topic == topic:
                counts[member.node, stream] = counts.get((member.node, stream), 0) + 1
    return counts


def _stream(stream: Stream) -> str:
    return f"{stream[0]}-{stream[1]}"


def _outlived(names: list[str]) -> str:
    """Why no program fetches for some registered members."""
    if not names:
        return ""
    program, session = (
        ("program", "its session") if len(names) == 1 else ("programs", "their sessions")
    )
    return f"; the {program} of {_and(names)} ended without closing {session}"


def _some(items: list[str]) -> str:
    shown = ", ".join(items[:3])
    return shown if len(items) <= 3 else f"{shown} and {len(items) - 3} more"


def _and(names: list[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
