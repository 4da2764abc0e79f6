"""The replicas of a broker at work: how each request is answered, and what is done at times.

A world makes a `Replicas` for each process of a broker and runs `open_replicas` in a task. Then
it passes each request that arrives to `answer`, one after the other for each connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.actor.orders import hand_in
from watchkeeper.model.actor.tasks import Start, take
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.storage import StorageError
from watchkeeper.model.replication.fetcher import BrokerHalted, start_fetcher
from watchkeeper.model.replication.kafka_fetch import serve_kafka_fetch
from watchkeeper.model.replication.leader import (
    announce_isrs,
    append,
    serve_end_of_epoch,
    serve_fetch,
    shrink_isrs,
)
from watchkeeper.model.replication.replicas import SETTINGS, Replicas
from watchkeeper.model.replication.requests import (
    AppendRecords,
    BrokerRequest,
    ControlledShutdown,
    DescribeTopic,
    EndOfEpoch,
    EpochEnd,
    ErrorCode,
    FetchRecords,
    LeaderAndIsr,
    StillLed,
    StopReplica,
    TopicMetadata,
    UpdateMetadata,
)
from watchkeeper.model.replication.variants import ChangedIsr
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.fetch import FetchRequest

ENDS_BROKER = (LogError, StorageError, BrokerHalted)
"""The errors of a task that end the process of its broker; others are faults of the program."""
ANNOUNCEMENT_MS = 2_500
"""How often a leader lets the controller know of changed ISRs, as since 0.9."""
SHUTDOWN_MS = 30_000
"""How long a broker that leaves waits for the controller."""


async def open_replicas(all_of: Replicas) -> None:
    """Read what is on the disk, say so, and start the tasks that look after the replicas.

    Raises LogError and StorageError: the broker cannot start.
    """
    await all_of.open()
    for replica in all_of.by_partition.values():
        await emit(
            EventKind.REPLICA_OPENED,
            topic=replica.partition.topic,
            partition=replica.partition.name,
            end=replica.end,
            high_watermark=replica.high_watermark,
        )
    all_of.hooks.on_follow = partial(start_fetcher, all_of)
    await Start("shrink ISRs", lambda: _shrink_from_time_to_time(all_of))
    if all_of.me.variant.changed_isr is ChangedIsr.ANNOUNCED:
        await Start("announce ISRs", lambda: _announce_from_time_to_time(all_of))
    await Start("apply settings", lambda: _apply_settings(all_of))
    await Start("write checkpoint", lambda: _write_checkpoint_from_time_to_time(all_of))
    for name, task in all_of.hooks.tasks.items():
        await Start(name, task)


async def _shrink_from_time_to_time(all_of: Replicas) -> None:
    while True:
        await sleep(all_of.me.lag_time_ms)
        await shrink_isrs(all_of)


async def _announce_from_time_to_time(all_of: Replicas) -> None:
    while True:
        await sleep(ANNOUNCEMENT_MS)
        await announce_isrs(all_of)


async def _write_checkpoint_from_time_to_time(all_of: Replicas) -> None:
    while True:
        await sleep(all_of.me.checkpoint_ms)
        await all_of.write_checkpoint()


async def _apply_settings(all_of: Replicas) -> None:
    """Follow changed settings, as the program of this process reads them."""
    while True:
        topic, config = await take(SETTINGS)
        await all_of.apply_settings(topic, config)


async def answer(all_of: Replicas, request: Any) -> Any:
    """Answer a request to a broker."""
    beside = all_of.hooks.answers.get(type(request))
    if beside is not None:
        return await beside(request)
    return await _ANSWERS[type(request)](all_of, request)


async def _end_of_epoch(all_of: Replicas, request: EndOfEpoch) -> EpochEnd:
    return serve_end_of_epoch(all_of, request)


async def _describe(all_of: Replicas, request: DescribeTopic) -> TopicMetadata:
    found = all_of.metadata_of(request.topic)
    if not found.leaders and all_of.hooks.on_missing_topic is not None:
        await all_of.hooks.on_missing_topic(request.topic)
    return found


async def _shut_down(all_of: Replicas, request: ControlledShutdown) -> StillLed:
    """Let the controller, if it is this broker, hand over what another one leads."""
    queue = all_of.fresh_queue("shut down")
    await hand_in(request, answer_to=queue)
    answer: StillLed | None = await take(queue, timeout_ms=SHUTDOWN_MS)
    return StillLed(ErrorCode.UNKNOWN) if answer is None else answer


_ANSWERS: Mapping[type[BrokerRequest | WireStruct], Callable[[Replicas, Any], Awaitable[Any]]] = {
    LeaderAndIsr: Replicas.leader_and_isr,
    StopReplica: Replicas.stop_replica,
    UpdateMetadata: Replicas.update_metadata,
    FetchRecords: serve_fetch,
    EndOfEpoch: _end_of_epoch,
    ControlledShutdown: _shut_down,
    FetchRequest: serve_kafka_fetch,
    AppendRecords: append,
    DescribeTopic: _describe,
}
"""Request -> the function that answers it."""
