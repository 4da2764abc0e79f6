"""All replicas in one broker, and what it does about the requests of a controller.

The tasks of a broker share a `Replicas`: those that answer requests, those that fetch from
leaders, and those that look at the ISR and write the checkpoint from time to time. A task runs
alone until its next effect; where a change takes several effects (a write of the ISR), the
replica says that it is changing and the others wait. Of each change the trace is first: what a
process does not come to do, the next one says when it opens its replicas.

Kafka 0.8.2.2: ReplicaManager, Partition.

What a request has to pass
  - the controller epoch of a request is not below the greatest that this process has seen;
  - the leader epoch of a partition is greater than the one that this process knows.
Both are in memory: a process that has just started takes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.tasks import UNBOUNDED, Posted, put, take
from watchkeeper.model.registry.payloads import NO_LEADER, TopicConfig
from watchkeeper.model.replication.registry import read_states, settings_of
from watchkeeper.model.replication.replica import Arrival, Hooks, Replica, WaitingAppend
from watchkeeper.model.replication.replica_files import ReplicaFiles
from watchkeeper.model.replication.replica_log import NO_EPOCH
from watchkeeper.model.replication.requests import (
    DELETED,
    BrokerAddress,
    ErrorCode,
    LeaderAndIsr,
    LeaderState,
    Outcome,
    StopReplica,
    TopicMetadata,
    UpdateMetadata,
)
from watchkeeper.model.replication.settings import ReplicationSettings
from watchkeeper.model.replication.truncation import HIGH_WATERMARK
from watchkeeper.model.replication.variants import (
    Awaited,
    FirstRequest,
    StaleMetadata,
    SteadyLeader,
    UnknownLeader,
    WaitingProducers,
)
from watchkeeper.model.trace.kinds import EventKind

SETTINGS = "settings of topics"
"""The queue of changed settings that the program has read: (topic, TopicConfig)."""
REGISTRATION = "registration"
"""The posted value that is another one each time this broker registers."""
STATE_CHANGES = "state changes"
"""The queue that one request of a controller fills while it is carried out."""
CHECKPOINTS = "checkpoints"
"""The queue that a write of the checkpoint fills while it is under way."""


class Replicas:
    """The replicas in one broker's process."""

    def __init__(
        self, me: ReplicationSettings, files: ReplicaFiles, now_ms: Callable[[], int]
    ) -> None:
        self.me = me
        self.files = files
        self.now_ms = now_ms
        self.controller_epoch = 0
        """The greatest that a request had."""
        self.states: dict[Partition, LeaderState] = {}
        """What UpdateMetadata said of each partition."""
        self.settings: dict[str, TopicConfig] = {}
        """The settings of each topic of which a replica is or was here."""
        self.said_in: tuple[int, object] = (0, None)
        """The reign and the own registration in which UpdateMetadata came last."""
        self.alive: tuple[BrokerAddress, ...] = ()
        self.addresses: dict[int, str] = {}
        """Leader -> where to fetch from it."""
        self.fetchers: dict[int, None] = {}
        """The leaders from which a task fetches."""
        self.hooks = Hooks()
        self.arrivals: dict[str, Arrival] = {}
        """Queue of a fetch that waits -> what it waits for."""
        self.changed_isrs: dict[Partition, None] = {}
        """The partitions whose ISR this leader has changed, and of which it has to let know."""
        self._numbers = count(1)
        self.by_partition: dict[Partition, Replica] = {}

    async def open(self) -> None:
        """Know what is on the disk; raises LogError and StorageError."""
        marks = await self.files.read_checkpoint()
        for partition, log in (await self.files.read_logs()).items():
            mark = min(marks.get(partition, 0), len(log))
            self.by_partition[partition] = Replica(partition, log, mark)

    def fresh_queue(self, purpose: str) -> str:
        """Return the name of a queue that no other task uses."""
        return f"{purpose}/{next(self._numbers)}"

    def leads(self, replica: Replica) -> bool:
        """Whether this broker believes that it leads."""
        return replica.leader == self.me.broker_id

    def led(self) -> list[Replica]:
        """Return the replicas that this broker believes to lead."""
        return [replica for replica in self.by_partition.values() if self.leads(replica)]

    def followed(self, leader: int) -> list[Replica]:
        """Return the replicas that follow a leader."""
        return [
            replica for replica in self.by_partition.values() if self.follows(replica, leader)
        ]

    def follows(self, replica: Replica, leader: int) -> bool:
        """Whether a replica follows a leader."""
        return replica.leader == leader != self.me.broker_id and not replica.is_stopped

    # --- one change at a time ----------------------------------------------------------

    async def settled(self, replica: Replica) -> None:
        """Wait until no change of a replica is under way."""
        while replica.is_changing:
            await put(_lock(replica), True, 1)
            await take(_lock(replica))

    async def hold(self, replica: Replica) -> None:
        """Let nothing else change a replica until it is let go.

        The caller has waited until it was settled, and for nothing since.
        """
        assert not replica.is_changing, "the caller has waited until it was settled"
        replica.is_changing = True
        await put(_lock(replica), True, 1)

    async def let_go(self, replica: Replica) -> None:
        """End a change of a replica."""
        replica.is_changing = False
        await take(_lock(replica))

    # --- requests of a controller ------------------------------------------------------

    async def leader_and_isr(self, request: LeaderAndIsr) -> Outcome:
        """Lead and follow as a controller says; the leaders first.

        Requests of two controllers may come at once: they are carried out one after the other.
        """
        await put(STATE_CHANGES, True, 1)
        outcome = await self._lead_and_follow(request)
        if self.hooks.on_leaders is not None:
            await self.hooks.on_leaders()
        await take(STATE_CHANGES)
        return outcome

    async def _lead_and_follow(self, request: LeaderAndIsr) -> Outcome:
        if self._is_stale(request.controller_epoch):
            return Outcome(ErrorCode.STALE_CONTROLLER_EPOCH)
        await _note_taken(request)
        addresses = dict(request.leaders)
        codes: dict[Partition, ErrorCode] = {}
        fresh: list[LeaderState] = []
        for said in request.states:
            known = self.by_partition.get(said.partition)
            epoch = NO_EPOCH if known is None else known.leader_epoch
            if said.state.leader_epoch <= epoch:
                codes[said.partition] = ErrorCode.STALE_LEADER_EPOCH
                continue
            codes[said.partition] = ErrorCode.NONE
            if self.me.broker_id in said.replicas:
                fresh.append(said)
        fresh = await self._checked(fresh, codes)
        for said in fresh:
            if self._is_led(said):
                await self._lead(said)
        for said in fresh:
            if not self._is_led(said):
                await self._follow(said, addresses)
        return Outcome(partitions=tuple(codes.items()))

    async def _checked(
        self, fresh: list[LeaderState], codes: dict[Partition, ErrorCode]
    ) -> list[LeaderState]:
        """Return what this broker has to lead and to follow, with the ISRs of the registry.

        A process that has just started cannot tell an old request from a new one. The process
        before it may have led in that epoch, and changed the ISR; or an old leader in that epoch
        may let it cut what is committed. Kafka refuses such a request since 2.2, by the broker
        epoch in it (KIP-380).
        """
        if self.me.variant.first_request is FirstRequest.TAKEN:
            return fresh
        unknown = [said for said in fresh if not self._has_looked(said.partition)]
        checked = [said for said in fresh if self._has_looked(said.partition)]
        found = await read_states([said.partition for said in unknown]) if unknown else []
        for said, seen in zip(unknown, found, strict=True):
            if seen is None or not seen.state.is_reign_of(said.state):
                codes[said.partition] = ErrorCode.STALE_LEADER_EPOCH
            else:
                checked.append(said._replace(state=seen.state, version=seen.version))
        return checked

    def _is_led(self, said: LeaderState) -> bool:
        return said.state.leader == self.me.broker_id

    def _has_looked(self, partition: Partition) -> bool:
        known = self.by_partition.get(partition)
        return known is not None and known.has_looked

    def _is_stale(self, controller_epoch: int) -> bool:
        if controller_epoch < self.controller_epoch:
            return True
        self.controller_epoch = controller_epoch
        return False

    async def _replica(self, partition: Partition) -> Replica:
        """Return a replica, which may be new, of a topic whose settings are known."""
        if partition.topic not in self.settings:
            await self.apply_settings(partition.topic, await settings_of(partition.topic))
        replica = self.by_partition.setdefault(partition, Replica(partition, []))
        replica.has_looked = True
        return replica

    async def _lead(self, said: LeaderState) -> None:
        replica = await self._replica(said.partition)
        await self.settled(replica)
        led_before = self.leads(replica)
        replica.take(said)
        replica.isr = said.state.isr
        replica.must_cut = replica.is_stopped = False
        replica.epoch_start = replica.end
        if not led_before or self.me.variant.steady_leader is SteadyLeader.FORGETS:
            replica.followers = {}
        replica.note_members(self.me.broker_id, self.now_ms())
        needs = self.me.min_in_sync
        more = {"min_in_sync": needs} if needs > 1 else {}
        await self._note(EventKind.BECAME_LEADER, replica, isr=list(replica.isr), **more)
        if not led_before:
            await self._note_log(replica)
        await self.raise_high_watermark(replica)

    async def _follow(self, said: LeaderState, addresses: Mapping[int, str]) -> None:
        replica = await self._replica(said.partition)
        await self.settled(replica)
        await self.hold(replica)
        await self._follow_held(replica, said, addresses)
        await self.let_go(replica)

    async def _follow_held(
        self, replica: Replica, said: LeaderState, addresses: Mapping[int, str]
    ) -> None:
        leader = said.state.leader
        variant = self.me.variant
        if leader not in addresses:
            await self._note(EventKind.LEADER_UNKNOWN, replica, said=leader)
            if variant.unknown_leader is UnknownLeader.KEEPS_OLD:
                return
            leader = NO_LEADER
        followed_before = replica.leader == leader and leader != NO_LEADER
        await self.cease_to_lead(replica)
        replica.take(said)
        replica.leader = leader
        replica.isr = ()
        await self._note(EventKind.BECAME_FOLLOWER, replica, leader=leader)
        if leader == NO_LEADER or (followed_before and variant.truncation == HIGH_WATERMARK):
            return
        replica.is_stopped = False
        if variant.truncation == HIGH_WATERMARK:
            await self._cut_held(replica, replica.high_watermark)
        else:
            replica.must_cut = True
        self.addresses[leader] = addresses[leader]
        if self.hooks.on_follow is not None and leader not in self.fetchers:
            self.fetchers[leader] = None
            await self.hooks.on_follow(leader)

    async def cease_to_lead(self, replica: Replica) -> None:
        """Let producers that wait know, where the variant does so."""
        if self.me.variant.waiting_producers is WaitingProducers.ANSWERED:
            await self.answer_waiting(replica, replica.waiting, ErrorCode.NOT_LEADER)

    async def stop_replica(self, request: StopReplica) -> Outcome:
        """Fetch partitions no more, and with `deletes` forget them and their logs."""
        await put(STATE_CHANGES, True, 1)
        outcome = await self._stop(request)
        await take(STATE_CHANGES)
        return outcome

    async def _stop(self, request: StopReplica) -> Outcome:
        if self._is_stale(request.controller_epoch):
            return Outcome(ErrorCode.STALE_CONTROLLER_EPOCH)
        await _note_taken(request)
        for partition in request.partitions:
            replica = self.by_partition.get(partition)
            if replica is None:
                continue
            await self.settled(replica)
            replica.is_stopped = not self.leads(replica)
            if request.deletes:
                await self.hold(replica)
                del self.by_partition[partition]
                await self._note(EventKind.REPLICA_DELETED, replica)
                await self.files.delete(partition)
                await self.let_go(replica)
        return Outcome(
            partitions=tuple((partition, ErrorCode.NONE) for partition in request.partitions)
        )

    async def update_metadata(self, request: UpdateMetadata) -> Outcome:
        """Know who leads which partition, and which brokers are alive."""
        await put(STATE_CHANGES, True, 1)
        outcome = await self._know(request)
        await take(STATE_CHANGES)
        return outcome

    async def _know(self, request: UpdateMetadata) -> Outcome:
        if self._is_stale(request.controller_epoch):
            return Outcome(ErrorCode.STALE_CONTROLLER_EPOCH)
        await _note_taken(request)
        await self._forget_what_may_be_stale(request.controller_epoch)
        self.alive = request.alive
        leaders: list[list[object]] = []
        isrs: list[list[object]] = []
        for said in request.states:
            known = self.states.get(said.partition)
            if known is None or known.state.leader != said.state.leader:
                leaders.append([*said.partition, said.state.leader])
            if said.state.leader == DELETED:
                self.states.pop(said.partition, None)
                continue
            if known is None or set(known.state.isr) != set(said.state.isr):
                isrs.append([*said.partition, list(said.state.isr)])
            self.states[said.partition] = said
        if leaders or isrs:
            await emit(
                EventKind.METADATA_UPDATED,
                epoch=request.controller_epoch,
                leaders=leaders,
                isrs=isrs,
            )
        return Outcome()

    async def _forget_what_may_be_stale(self, epoch: int) -> None:
        """Forget the leaders that were known before this reign or registration.

        A controller says everything at the begin of its reign, and to each broker that registers.
        """
        said_in = epoch, await Posted(REGISTRATION)
        if said_in == self.said_in:
            return
        self.said_in = said_in
        if self.states and self.me.variant.stale_metadata is StaleMetadata.FORGOTTEN:
            forgotten = [[*partition, DELETED] for partition in self.states]
            self.states.clear()
            await emit(EventKind.METADATA_UPDATED, epoch=epoch, leaders=forgotten, isrs=[])

    def metadata_of(self, topic: str) -> TopicMetadata:
        """Return who leads the partitions of a topic, as far as this broker knows."""
        leaders = tuple(
            (partition, said.state.leader)
            for partition, said in self.states.items()
            if partition.topic == topic
        )
        return TopicMetadata(leaders, self.alive)

    # --- settings of topics ------------------------------------------------------------

    async def apply_settings(self, topic: str, config: TopicConfig) -> None:
        """Follow the settings of a topic from now on."""
        before = self.settings.get(topic, TopicConfig())
        self.settings[topic] = config
        if config != before:
            await emit(EventKind.SETTINGS_APPLIED, topic=topic, settings=dict(config.overrides))

    def min_in_sync(self, topic: str) -> int:
        """How many replicas have to be in the ISR for producers that wait for all of it.

        The setting of the topic counts before that of the broker.
        """
        return self.settings.get(topic, TopicConfig()).min_in_sync(self.me.min_in_sync)

    def allows_unclean(self, topic: str) -> bool:
        """Whether a replica that is not in the ISR may lead, and others cut what it lacks."""
        return self.settings.get(topic, TopicConfig()).allows_unclean(self.me.allows_unclean)

    # --- logs and high watermarks ------------------------------------------------------

    async def cut(self, replica: Replica, end: int) -> None:
        """Cut the log of a follower."""
        await self.settled(replica)
        await self.hold(replica)
        await self._cut_held(replica, end)
        await self.let_go(replica)

    async def _cut_held(self, replica: Replica, end: int) -> None:
        if end >= replica.end:
            return
        lost = replica.end - end
        del replica.log[end:]
        replica.high_watermark = min(replica.high_watermark, end)
        await self._note(EventKind.TRUNCATED, replica, lost=lost)
        await self.files.truncate(replica.partition, replica.log)

    async def raise_high_watermark(self, replica: Replica) -> None:
        """Raise the high watermark of a leader to the smallest end in the ISR.

        If it waits for the ISR alone, it may run ahead of a follower that is always a little
        behind, so that this one never joins the ISR (KAFKA-4485).
        """
        ends: list[int] = []
        lately = self.me.variant.awaited is Awaited.CAUGHT_UP
        joining = replica.about_to_join(self.oldest_ms()) if lately else []
        for broker in (*replica.isr, *joining):
            if broker == self.me.broker_id:
                ends.append(replica.end)
                continue
            follower = replica.followers.get(broker)
            if follower is None or follower.end is None:
                return
            ends.append(follower.end)
        if not ends or min(ends) <= replica.high_watermark:
            return
        replica.high_watermark = min(ends)
        await self._note(EventKind.COMMITTED, replica)
        await self.wake_fetches(replica, of_consumers=True)
        done = [one for one in replica.waiting if one.end <= replica.high_watermark]
        enough = len(replica.isr) >= self.min_in_sync(replica.partition.topic)
        code = ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        await self.answer_waiting(replica, done, code)

    def oldest_ms(self) -> int:
        """Since when a follower has to have been at the end of the log."""
        return self.now_ms() - self.me.lag_time_ms

    async def wake_fetches(self, replica: Replica, *, of_consumers: bool) -> None:
        """Let fetches that wait go on: something new has come for them."""
        for queue, arrival in tuple(self.arrivals.items()):
            concerned = replica.partition in arrival.partitions
            if not concerned or arrival.of_consumer is not of_consumers:
                continue
            # Another task may have let it go on while this one has waited.
            if self.arrivals.pop(queue, None) is not None:
                await put(queue, True, UNBOUNDED)

    async def answer_waiting(
        self, replica: Replica, waiting: Iterable[WaitingAppend], code: ErrorCode
    ) -> None:
        """Answer producers that wait for the ISR."""
        for one in tuple(waiting):
            replica.waiting.remove(one)
            await put(one.queue, code, UNBOUNDED)

    async def write_checkpoint(self) -> None:
        """Write the high watermark of every replica; one write at a time."""
        await put(CHECKPOINTS, True, 1)
        await self.files.write_checkpoint(
            {partition: one.high_watermark for partition, one in self.by_partition.items()}
        )
        await take(CHECKPOINTS)

    async def _note_log(self, replica: Replica) -> None:
        """Say where the log of a partition ends now, which another broker led before."""
        await emit(
            EventKind.LOG_OPENED,
            topic=replica.partition.topic,
            partition=replica.partition.name,
            start=0,
            end=replica.end,
            clean=True,
        )

    async def _note(self, kind: EventKind, replica: Replica, **more: object) -> None:
        await emit(
            kind,
            topic=replica.partition.topic,
            partition=replica.partition.name,
            epoch=replica.leader_epoch,
            end=replica.end,
            high_watermark=replica.high_watermark,
            **more,
        )


async def _note_taken(request: LeaderAndIsr | StopReplica | UpdateMetadata) -> None:
    """Write into the trace that a request of a controller is carried out."""
    await emit(
        EventKind.CONTROL_TAKEN,
        controller=request.controller,
        request=type(request).__name__,
        epoch=request.controller_epoch,
    )


def _lock(replica: Replica) -> str:
    return f"change/{replica.partition}"
