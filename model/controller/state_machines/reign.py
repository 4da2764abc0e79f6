"""A controller at work during one turn: what it knows, its reads, and its fenced writes.

A turn makes a `Reign` of the context, changes it, and keeps the context that results. A `Reign`
never outlives a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import (
    BadVersion,
    Failure,
    NodeExists,
    NoNode,
    TransactionFailed,
)
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    PartOfMulti,
    Pipelined,
    Purpose,
    SetData,
)
from watchkeeper.model.actor.retry import Requests, create_with_parents, read_or_none
from watchkeeper.model.actor.tasks import UNBOUNDED, put
from watchkeeper.model.controller.state_machines.channel import Batch, Sender
from watchkeeper.model.controller.state_machines.context import Context, place_of
from watchkeeper.model.controller.state_machines.states import PartitionStatus
from watchkeeper.model.controller.state_machines.variants import (
    BatchAfterError,
    ControllerVariant,
    StateBefore,
    StateZnode,
    StrayReplicas,
)
from watchkeeper.model.controller.state_machines.writes import StateWrite
from watchkeeper.model.group.variants import Reads
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment, TopicConfig
from watchkeeper.model.replication.registry import Leadership, leadership_in
from watchkeeper.model.trace.kinds import EventKind

T = TypeVar("T")


class Deposed(Exception):
    """Another controller has raised the epoch: the reign is over."""


class CallbackFailed(Exception):
    """An error ends what a controller does about a change; the text says why."""


class TransitionFailed(Exception):
    """A partition or a replica stays in the state it is in; the text says why."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The configuration of the controller in one broker."""

    broker_id: int
    variant: ControllerVariant
    allows_unclean: bool = True
    """`unclean.leader.election.enable`, true by default in 0.8.2."""
    session_timeout_ms: int = 6000
    sends: bool = False
    """Whether it sends requests to brokers; otherwise leaders are what ZooKeeper says."""
    rebalance_ms: int | None = 300_000
    """`leader.imbalance.check.interval.seconds`; None: preferred replicas lead on request."""
    shutdown_backoff_ms: int | None = 5_000
    """`controlled.shutdown.retry.backoff.ms`; None without `controlled.shutdown.enable`."""
    deletes_topics: bool = True
    """`delete.topic.enable`, false by default in 0.8.2."""


@dataclass(slots=True)
class Reign:
    """A controller at work, during one turn."""

    me: ControllerSettings
    requests: Requests
    context: Context
    batch: Batch = field(default_factory=Batch)
    """What is to be sent to brokers when the transitions under way are done."""
    leftovers: frozenset[Sender] = frozenset()
    """Whose batch an error has left full; as shipped until the process ends."""
    is_over: bool = False
    """Whether the reign has ended: what it still does has no channel to any broker."""

    # --- what it knows -----------------------------------------------------------------

    def keep(self, partition: Partition, state: PartitionState, version: int) -> None:
        """Remember the state of a partition, and the version of its znode."""
        known = self.context.leadership.set(partition, Leadership(state, version))
        self.context = replace(self.context, leadership=known)

    def mark(self, partition: Partition, status: PartitionStatus) -> None:
        """Put a partition into a state."""
        marked = self.context.partitions.set(partition, status)
        self.context = replace(self.context, partitions=marked)

    def assign(self, partition: Partition, replicas: tuple[int, ...]) -> None:
        """Remember other replicas of a partition."""
        assigned = self.context.assignment.set(partition, replicas)
        self.context = replace(self.context, assignment=assigned)

    async def note_failure(self, partition: Partition, wanted: str, why: str) -> None:
        """Write into the trace that a transition failed."""
        await emit(
            EventKind.TRANSITION_FAILED,
            topic=partition.topic,
            partition=partition.name,
            to=wanted,
            why=why,
        )

    async def allows_unclean(self, partition: Partition, state: PartitionState) -> bool:
        """Whether a replica outside of the ISR may lead.

        The setting of the topic counts before that of the brokers. It is read when the answer
        matters: where no member of the ISR is alive.
        """
        if not self.depends_on_settings(state):
            return self.me.allows_unclean
        path = paths.topic_config(partition.topic)
        seen = await read_or_none(self.requests, GetData(path, False, "read settings"))
        try:
            found = TopicConfig() if seen is None else TopicConfig.decode(path, seen.data)
        except BadPayload:
            found = TopicConfig()
        return found.allows_unclean(self.me.allows_unclean)

    def depends_on_settings(self, state: PartitionState) -> bool:
        """Whether the settings of a topic decide who may lead."""
        return self.me.sends and not any(one in self.context.live for one in state.isr)

    # --- requests to brokers -----------------------------------------------------------

    def lead(self, partition: Partition, brokers: Iterable[int]) -> None:
        """Let brokers lead or follow a partition, and every live broker know who leads."""
        said = self.context.said_of(partition)
        if said is not None:
            self.batch.lead(brokers, said)
            self.batch.tell(self.context.live, (said,))

    def tell_all(self, brokers: Iterable[int]) -> None:
        """Let brokers know the leader of every partition, and who is alive.

        As shipped an error ends this at a partition whose leader is remembered and whose
        replicas are not, since its topic was deleted by hand. Raises CallbackFailed.
        """
        if not self.me.sends:
            return
        self.check_batch(Sender.CONTROLLER)
        context = self.context
        known = sorted(context.leadership, key=place_of)
        if self.me.variant.batch_after_error is BatchAfterError.DROPPED:
            known = [partition for partition in known if partition in context.assignment]
        lost = next((one for one in known if one not in context.assignment), None)
        told = known if lost is None else known[: known.index(lost)]
        said = map(context.said_of, told)
        self.batch.tell(brokers, [one for one in said if one is not None])
        if lost is not None:
            self._leave_batch(Sender.CONTROLLER)
            raise CallbackFailed(f"no replicas of {lost} are known")

    def check_batch(self, sender: Sender) -> None:
        """Raise CallbackFailed if an error has left the batch of a sender full."""
        if sender in self.leftovers:
            raise CallbackFailed(f"the batch of {sender} is not empty, since an error ended it")

    def _leave_batch(self, sender: Sender) -> None:
        """An error ends a batch: as shipped what is in it stays there."""
        if not self.batch.is_empty and self.me.variant.batch_after_error is BatchAfterError.KEPT:
            self.leftovers |= {sender}
        self.batch = Batch()

    def drop_strays(self, brokers: Iterable[int]) -> None:
        """Let brokers delete what is not assigned to them, where the variant does so.

        A broker that was down has missed the request to delete a replica that moved away.
        """
        if self.me.variant.stray_replicas is StrayReplicas.KEPT:
            return
        assignment = self.context.assignment
        for broker in brokers:
            strays = [one for one in self.context.assigned() if broker not in assignment[one]]
            if strays:
                self.batch.strays[broker] = tuple(strays)

    async def can_send(self, sender: Sender) -> bool:
        """Whether the batch of a state machine is empty; if not, the trace says so."""
        try:
            self.check_batch(sender)
        except CallbackFailed as why:
            await note_error(str(why))
            return False
        return True

    async def send_of(self, sender: Sender) -> None:
        """Send what a state machine has collected; an error ends that alone."""
        try:
            await self.send(sender)
        except CallbackFailed as why:
            await note_error(str(why))

    async def send(self, sender: Sender = Sender.CONTROLLER) -> None:
        """Hand the batch to the channels; what is for a broker without one is dropped.

        Raises CallbackFailed if the reign is over: then there are no channels.
        """
        if self.is_over and not self.batch.is_empty:
            self._leave_batch(sender)
            raise CallbackFailed("the reign is over, and there is no channel to any broker")
        batch, self.batch = self.batch, Batch()
        if not self.me.sends:
            return
        context = self.context
        if context.hidden:
            batch.tell(tuple(batch.metadata), context.hidden_states())
        channels = {channel.broker: channel for channel in context.channels()}
        found = batch.requests(self.me.broker_id, context.epoch, context.addresses())
        for broker, request in found:
            if broker in channels:
                await emit(
                    EventKind.CONTROL_SENT,
                    to=broker,
                    request=type(request).__name__,
                    epoch=context.epoch,
                )
                await put(channels[broker].queue, request, UNBOUNDED)

    # --- reads -------------------------------------------------------------------------

    async def read_all(self, names: Sequence[str], *, watch: bool) -> list[ZnodeView | None]:
        """Read znodes, one by one or in one batch; None for each that does not exist."""
        reads = [GetData(path, watch, "read cluster") for path in names]
        if self.me.variant.reads is Reads.ONE_BY_ONE:
            return [await read_or_none(self.requests, read) for read in reads]
        if not reads:
            return []
        found = await self.requests(Pipelined(tuple(reads)))
        return [_found(answer) for answer in found]

    async def leadership_of(
        self, partition: Partition, *, watch: bool = False
    ) -> Leadership | None:
        """Read the state of a partition; None if it has none that can be read."""
        path = paths.partition_state(partition)
        [seen] = await self.read_all([path], watch=watch)
        return leadership_in(path, seen)

    async def read_states(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Read states in one batch, and remember them; return the partitions that may be written.

        Left out is a partition without a state, or with the state of a later controller.
        """
        names = [paths.partition_state(partition) for partition in partitions]
        seen = await self.read_all(names, watch=False)
        fit: list[Partition] = []
        for partition, path, znode in zip(partitions, names, seen, strict=True):
            found = leadership_in(path, znode)
            if found is not None and found.state.controller_epoch <= self.context.epoch:
                self.keep(partition, *found)
                fit.append(partition)
        return fit

    async def read_and_watch(self, path: str) -> ZnodeView | None:
        """Read and watch a znode that may not exist yet."""
        while True:
            [seen] = await self.read_all([path], watch=True)
            if seen is not None:
                return seen
            if await self.requests(Exists(path, True, "read cluster")) is None:
                return None

    async def state_to_replace(
        self, partition: Partition, *, was_refused: bool
    ) -> Leadership | None:
        """Return the state of a partition before a write; None if it has none.

        The known state may do, until a write is refused: then another process has written it,
        as leaders do that change the ISR.
        """
        known = self.context.leadership.get(partition)
        if was_refused or known is None or self.me.variant.state_before is StateBefore.READ:
            return await self.leadership_of(partition)
        return known

    def may_be_stale(self, *, was_refused: bool) -> bool:
        """Whether leaders may have changed the state since that `state_to_replace` returned.

        A write would be refused then. Where nothing is to be written, only another look shows it.
        """
        knows = self.me.variant.state_before is StateBefore.KNOWN
        return knows and self.me.sends and not was_refused

    async def read_request(
        self, path: str, decode: Callable[[str, bytes | None], T]
    ) -> tuple[T, int] | None:
        """Read and watch a request of an administrator, with its version; None without one.

        One that cannot be read is written into the trace. As shipped it stays; `hardened` deletes
        it, so that the next one can be made.
        """
        seen = await self.read_and_watch(path)
        if seen is None:
            return None
        try:
            return decode(path, seen.data), seen.version
        except BadPayload as error:
            await emit(EventKind.REQUEST_UNREADABLE, path=path, why=str(error))
            if self.me.variant.fenced:
                with suppress(NoNode, BadVersion):
                    await self.fenced(Delete(path, seen.version, "other"))
            return None

    # --- writes ------------------------------------------------------------------------

    async def write(self, write: StateWrite) -> bool:
        """Make a write, and remember the state; False if the znode had another version.

        Raises NodeExists if a state to create exists, TransitionFailed if its topic is gone,
        and Deposed if a fenced write is refused.
        """
        if write.version is None:
            await self._create(write)
            self.keep(write.partition, write.state, 0)
            return True
        try:
            version = await self.fenced(_set(write))
        except BadVersion:
            return await self._adopt(write)
        except NoNode:
            return False
        self.keep(write.partition, write.state, version)
        return True

    async def write_together(self, writes: Sequence[StateWrite]) -> list[StateWrite]:
        """Make writes in one batch, and remember the states; return those that took effect.

        The others are refused: they are to be made again, one by one, which shows why.
        """
        if not writes:
            return []
        fence = self._fence("write state")
        is_fenced = self.me.variant.fenced
        operations: list[Multi | SetData | Create] = []
        last: list[int] = []
        for write in writes:
            parts = self._creations(write) if write.version is None else [_set(write)]
            operations += [
                Multi((fence, part), part.purpose) if is_fenced else part for part in parts
            ]
            last.append(len(operations) - 1)
        answers = await self.requests(Pipelined(tuple(operations)))
        done = []
        for write, at in zip(writes, last, strict=True):
            if not isinstance(answers[at], Failure):
                changed = answers[at][1] if is_fenced else answers[at]
                version = 0 if write.version is None else changed
                self.keep(write.partition, write.state, version)
                done.append(write)
        return done

    async def _adopt(self, write: StateWrite) -> bool:
        """Whether the state is what was to be written: an earlier attempt took effect."""
        stored = await self.leadership_of(write.partition)
        if stored is None or not stored.state.is_same(write.state):
            return False
        self.keep(write.partition, *stored)
        return True

    async def _create(self, write: StateWrite) -> None:
        creation = self._creation_of(write)
        if not self.me.variant.fenced:
            await create_with_parents(self.requests, creation)
            return
        try:
            await self.fenced(creation)
        except NoNode:
            await self._create_parents(write.partition)
            await self._create_again(creation)

    def _creation_of(self, write: StateWrite) -> Create:
        path, data = paths.partition_state(write.partition), write.state.encode()
        is_ephemeral = self.me.variant.state_znode is StateZnode.EPHEMERAL
        return Create(path, data, ephemeral=is_ephemeral, purpose="create state")

    def _creations(self, write: StateWrite) -> list[Create]:
        """The znodes between a topic and a state, which may exist, and the state."""
        above = paths.partitions(write.partition.topic)
        return [
            Create(above, b"", purpose="create state"),
            Create(f"{above}/{write.partition.name}", b"", purpose="create state"),
            self._creation_of(write),
        ]

    async def _create_parents(self, partition: Partition) -> None:
        """Create the znodes between a topic and a state; never the topic itself."""
        above = paths.partitions(partition.topic)
        for path in (above, f"{above}/{partition.name}"):
            try:
                await self.fenced(Create(path, b"", purpose="create state"))
            except NodeExists:
                continue
            except NoNode:
                raise TransitionFailed("its topic was deleted") from None

    async def _create_again(self, creation: Create) -> None:
        try:
            await self.fenced(creation)
        except NoNode:
            raise TransitionFailed("its topic was deleted") from None

    async def fenced(self, operation: PartOfMulti) -> Any:
        """Make one write, where the variant says so under the version of the epoch."""
        if not self.me.variant.fenced:
            return await self.requests(operation)
        [answer] = await self.fenced_together((operation,))
        return answer

    async def fenced_together(self, operations: tuple[PartOfMulti, ...]) -> tuple[Any, ...]:
        """Make all of these writes or none, under the version of the epoch; return the answers.

        Raises Deposed if another controller has raised it, else the error of the first failure.
        """
        purpose = operations[0].purpose
        try:
            answers = await self.requests(Multi((self._fence(purpose), *operations), purpose))
        except TransactionFailed as failed:
            if failed.index == 0:
                raise Deposed from None
            raise failed.cause.error() from None
        return answers[1:]

    def _fence(self, purpose: Purpose) -> Check:
        return Check(paths.CONTROLLER_EPOCH, self.context.fence, purpose)


async def note_error(why: str) -> None:
    """Write into the trace that an error has ended what a controller does about a change."""
    await emit(EventKind.CALLBACK_FAILED, why=why)


def _set(write: StateWrite) -> SetData:
    assert write.version is not None, "a state that exists has a version"
    path = paths.partition_state(write.partition)
    return SetData(path, write.state.encode(), write.version, "write state")


def _found(answer: ZnodeView | Failure) -> ZnodeView | None:
    if not isinstance(answer, Failure):
        return answer
    if answer.kind is NoNode:
        return None
    raise answer.error()


def assignment_in(path: str, seen: ZnodeView | None) -> TopicAssignment | None:
    """Return the assignment of a topic; None if there is none, or no valid one."""
    if seen is None:
        return None
    try:
        return TopicAssignment.decode(path, seen.data)
    except BadPayload:
        return None


async def children_of(requests: Requests, path: str) -> tuple[str, ...]:
    """List and watch the children of a znode, sorted; a missing znode is watched for."""
    while True:
        try:
            names = await requests(GetChildren(path, True, "read cluster"))
            return tuple(sorted(names))
        except NoNode:
            if await requests(Exists(path, True, "read cluster")) is None:
                return ()
