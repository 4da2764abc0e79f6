"""One group with members by Kafka's consumer and by this project's: faults and changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from time import monotonic, sleep

from bench.interop_clients.broker import run_command
from bench.interop_clients.groups.judge import GroupView, differences, read_group
from bench.interop_clients.groups.members import SESSION_MS, Kind, Members, java_member
from bench.interop_clients.jvm import COUNT, lines_of
from bench.interop_clients.kafka_cluster import OnKafka, connected
from bench.interop_clients.outcome import Action, expect

CLIENT = "mixed group"
BROKERS = (1, 2)
TOPIC, PARTITIONS = "clicks", 8
ROUNDS = 10
SETTLES_WITHIN_S = 90.0
LOOK_EVERY_S = 0.5
SHORT_S = SESSION_MS / 3000
SEED = 1
READS = {"reads": "true"}
SHOWN = 3
"""So many differences are printed."""


class MixedGroups(OnKafka):
    """Groups on two brokers of Kafka."""

    client = CLIENT

    def __init__(self, folder: Path, jars: Path) -> None:
        super().__init__(folder / "mixed", jars)
        self._groups: list[Members] = []

    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""
        yield self.start_action(BROKERS)
        yield self.action("a member of each kind joins", self._joined)
        for kind in Kind:
            yield self.action(f"kill -9 of {kind}, and its successor", self._killed, kind)
        for kind in Kind:
            yield self.action(f"{kind} stands still for {SHORT_S:g} s", self._short, kind)
            yield self.action(f"{kind} stands still, longer than its session", self._long, kind)
        yield self.action(f"{ROUNDS} rounds: one leaves, one joins", self._churned)
        yield self.action("messages, while members are killed and leave", self._delivered)
        yield self.action("messages, while a broker is killed", self._broker_killed)
        yield self.action("a topic grows from 8 to 11 partitions", self._grown)
        yield self.action("unequal numbers of streams, two topics", self._unequal)
        yield self.action("filters, and a topic that appears", self._filtered)
        yield self.action("roundrobin", self._round_robin)

    def end(self) -> None:
        """End every process."""
        for members in self._groups:
            members.end()
        super().end()

    def start(self, brokers: Sequence[int]) -> str:
        """Start the servers, where members by Kafka can be compiled."""
        java_member(self.jars)
        return super().start(brokers)

    # --- actions -----------------------------------------------------------------------

    def _joined(self) -> str:
        self.create(TOPIC, PARTITIONS)
        members = self._group("billing")
        said = ""
        for kind in Kind:
            members.start(kind, f"{TOPIC}:1")
            said = self._settled(members)
        return said

    def _killed(self, kind: Kind) -> str:
        members = self._groups[0]
        members.kill(members.of_kind(kind))
        said = self._settled(members)
        members.start(kind, f"{TOPIC}:1")
        return f"{said}; then {self._settled(members)}"

    def _short(self, kind: Kind) -> str:
        """Shorter than the session: no owner changes, not even to the same one."""
        members = self._groups[0]
        before = self._claims(members)
        member = members.running[members.of_kind(kind)]
        member.stop()
        sleep(SHORT_S)
        member.go_on()
        said = self._settled(members)
        expect(self._claims(members) == before, True, "every claim is the one before")
        return said

    def _long(self, kind: Kind) -> str:
        """Longer than the session: the others own everything, until it goes on."""
        members = self._groups[0]
        name = members.of_kind(kind)
        members.running[name].stop()
        try:
            said = self._settled(members, without=name)
        finally:
            members.running[name].go_on()
        return f"{said}; then {self._settled(members)}"

    def _churned(self) -> str:
        members, drawn = self._groups[0], Random(SEED)
        for _ in range(ROUNDS):
            members.leave(drawn.choice(sorted(members.running)))
            members.start(drawn.choice([*Kind]), f"{TOPIC}:1")
            self._settled(members)
        return f"{ROUNDS} rounds settled; in the end {', '.join(sorted(members.running))}"

    def _delivered(self) -> str:
        """Each message is read; what a killed member has read may be read again."""
        members = self._readers("read")
        changes = (members.kill, members.kill, members.leave)
        for kind, change in zip(Kind, changes, strict=True):
            self._produce("read", kind)
            change(members.of_kind(kind))
            members.start(kind, "read:1", config=READS)
        self._settled(members)
        return self._all_read(members, len(changes) * COUNT)

    def _broker_killed(self) -> str:
        """The leaders of half of the partitions move, and members follow them."""
        members = self._readers("moved")
        self._produce("moved", "before")
        self.cluster.kill(BROKERS[1])
        self.cluster.await_registered(BROKERS[1], is_there=False)
        self._produce("moved", "after")
        said = self._all_read(members, 2 * COUNT)
        self.cluster.start(BROKERS[1])
        self.cluster.await_registered(BROKERS[1])
        return said

    def _readers(self, topic: str) -> Members:
        """A group with a member of each kind that reads a topic of its own."""
        self.create(topic, PARTITIONS)
        members = self._group(f"of-{topic}")
        for kind in Kind:
            members.start(kind, f"{topic}:1", config=READS)
        self._settled(members)
        return members

    def _produce(self, topic: str, word: str) -> None:
        lines = [f"{line}\t{line}" for line in lines_of(word, COUNT)]
        keyed = ("--sync", "--property", "parse.key=true", "--request-required-acks", "-1")
        self.cluster.jvm(BROKERS[0]).produce(topic, "none", lines, *keyed)

    def _all_read(self, members: Members, count: int) -> str:
        """Wait until so many different messages have been read, and end the members."""
        deadline_s = monotonic() + SETTLES_WITHIN_S
        while len(found := members.messages()) < count:
            if monotonic() > deadline_s:
                raise AssertionError(f"{len(found)} of {count} messages were read")
            sleep(LOOK_EVERY_S)
        members.end()
        return f"{len(found)} of {count}, {sum(found.values()) - len(found)} of them again"

    def _grown(self) -> str:
        options = ("--alter", "--topic", TOPIC, "--partitions", "11")
        self.topic_command(*options)
        said = self._settled(self._groups[0], least={TOPIC: 11})
        self._groups[0].end()
        return said

    def _unequal(self) -> str:
        self.create("views", 5)
        members = self._group("unequal")
        for kind, streams in (
            (Kind.JVM, f"{TOPIC}:3"),
            (Kind.HARDENED, f"{TOPIC}:12,views:2"),
            (Kind.KAFKA_08, "views:1"),
            (Kind.JVM, f"{TOPIC}:1,views:4"),
        ):
            members.start(kind, streams)
            said = self._settled(members)
        members.end()
        return said

    def _filtered(self) -> str:
        members = self._group("filtered")
        self.create("ad-1", 3)
        for kind, pattern, streams in (
            (Kind.JVM, "white_list", "ad-.*:2"),
            (Kind.HARDENED, "white_list", "ad-.*,views:1"),
            (Kind.KAFKA_08, "black_list", "clicks:1"),
            (Kind.JVM, "black_list", "clicks|views:1"),
            (Kind.KAFKA_08, "static", "ad-1:1"),
        ):
            members.start(kind, streams, pattern=pattern)
            self._settled(members)
        self.create("ad-2", 7)
        said = self._settled(members, least={"ad-2": 7})
        members.end()
        return said

    def _round_robin(self) -> str:
        members = self._group("dealt")
        config = {"partition.assignment.strategy": "roundrobin"}
        for kind, streams in ((Kind.JVM, 2), (Kind.HARDENED, 1), (Kind.KAFKA_08, 3)):
            members.start(kind, f".*:{streams}", pattern="white_list", config=config)
            said = self._settled(members, strategy="roundrobin")
        members.end()
        return said

    # --- what they share ---------------------------------------------------------------

    def _group(self, name: str) -> Members:
        members = Members(self.zookeeper.hosts, name, self.folder, self.jars)
        self._groups.append(members)
        return members

    def _settled(
        self,
        members: Members,
        *,
        strategy: str = "range",
        without: str = "",
        least: Mapping[str, int] | None = None,
    ) -> str:
        """Wait until two looks in turn find every owner that is due, and audit.

        without   a member that stands still, whose session has to expire
        least     topics that have to have so many partitions
        """
        deadline_s = monotonic() + SETTLES_WITHIN_S
        there = {f"{members.group}_{name}" for name in members.running if name != without}
        looks: list[str] = []
        while looks[-2:] != ["", ""]:
            if monotonic() > deadline_s:
                raise AssertionError(f"not settled: {looks[-1]}")
            with connected(self.zookeeper.hosts) as client:
                view = read_group(client, members.group)
            looks.append(amiss(view, there, strategy, least or {}))
            sleep(LOOK_EVERY_S)
        self._audited(members.group, strategy)
        return f"{len(view.owners)} owners as due"

    def _audited(self, group: str, strategy: str) -> None:
        options = ("audit", self.zookeeper.hosts, "--group", group, "--assignor", strategy)
        done = run_command(*options, within_s=SETTLES_WITHIN_S)
        expect(
            done.returncode, 0, f"exit code of audit ({done.stdout[-300:]}{done.stderr[-300:]})"
        )

    def _claims(self, members: Members) -> dict[str, int]:
        """The znode of each owner, by the transaction that created it."""
        with connected(self.zookeeper.hosts) as client:
            view = read_group(client, members.group)
            paths = [
                f"/consumers/{members.group}/owners/{topic}/{number}"
                for topic, number in view.owners
            ]
            return {path: client.get(path)[1].czxid for path in paths}


def amiss(view: GroupView, members: set[str], strategy: str, least: Mapping[str, int]) -> str:
    """What keeps a group from being settled; nothing if it is."""
    if {*view.members} != members:
        return f"members are {sorted(view.members)}, due are {sorted(members)}"
    for topic, count in least.items():
        if view.topics.get(topic, 0) < count:
            return f"{topic} has fewer than {count} partitions"
    return "; ".join(differences(view, strategy)[:SHOWN])
