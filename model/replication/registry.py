"""What a broker reads in ZooKeeper about its replicas: states of partitions, settings of topics.

The tasks of a broker share the session of its program. A request that meets a lost connection
or a lost session is repeated until it is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, NoNode, SessionExpired
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import GetData, Pipelined, Sync
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import PartitionState, TopicConfig
from watchkeeper.model.trace.kinds import EventKind

RECONNECT_MS = 100
"""How long a request waits for a connection before it is repeated."""


class Leadership(NamedTuple):
    """The state of a partition as it was read or written last, and its znode's version."""

    state: PartitionState
    version: int


def leadership_in(path: str, seen: ZnodeView | None) -> Leadership | None:
    """Return what a state's znode holds; None if there is none, or no valid state in it."""
    if seen is None:
        return None
    try:
        return Leadership(PartitionState.decode(path, seen.data), seen.version)
    except BadPayload:
        return None


async def read_states(partitions: Sequence[Partition]) -> list[Leadership | None]:
    """Read the states of partitions in one batch; None where there is none to be read.

    The server of this session may lag behind what a controller has written. So it catches up
    first.
    """
    names = [paths.partition_state(partition) for partition in partitions]
    catch_up = Sync(paths.TOPICS, "write isr")
    reads = Pipelined((catch_up, *(GetData(path, False, "write isr") for path in names)))
    while True:
        try:
            answers = await reads
        except (ConnectionLoss, SessionExpired):
            await sleep(RECONNECT_MS)
            continue
        seen = (None if isinstance(answer, Failure) else answer for answer in answers[1:])
        return [leadership_in(path, znode) for path, znode in zip(names, seen, strict=True)]


async def settings_of(topic: str) -> TopicConfig:
    """Read the settings of a topic; none where there are none, or where they cannot be read."""
    path = paths.topic_config(topic)
    while True:
        try:
            seen = await GetData(path, False, "read settings")
            return TopicConfig.decode(path, seen.data)
        except NoNode:
            return TopicConfig()
        except BadPayload as unreadable:
            await emit(EventKind.SETTINGS_REFUSED, topic=topic, why=str(unreadable))
            return TopicConfig()
        except (ConnectionLoss, SessionExpired):
            await sleep(RECONNECT_MS)
