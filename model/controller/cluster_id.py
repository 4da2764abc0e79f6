"""The id of a cluster: the first broker creates it, and every broker reads it.

0.8.2.2 has none; Kafka has it since 0.10.1 (KIP-78).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from watchkeeper.model.actor.effects import emit, fresh_id
from watchkeeper.model.actor.errors import NodeExists
from watchkeeper.model.actor.operations import Create, GetData
from watchkeeper.model.actor.retry import Direct, create_with_parents, read_or_none
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import ClusterId
from watchkeeper.model.trace.kinds import EventKind


async def know_cluster_id() -> None:
    """Read the id, or create it; of two brokers at once, one creates it and both read it."""
    requests = Direct()
    while True:
        seen = await read_or_none(requests, GetData(paths.CLUSTER_ID, False, "read cluster id"))
        if seen is not None:
            break
        drawn = urlsafe_b64encode(bytes.fromhex(await fresh_id())).decode().rstrip("=")
        try:
            await create_with_parents(
                requests,
                Create(paths.CLUSTER_ID, ClusterId(drawn).encode(), purpose="read cluster id"),
            )
        except NodeExists:
            continue
    try:
        found = ClusterId.decode(paths.CLUSTER_ID, seen.data).identity
    except BadPayload as unreadable:
        await emit(EventKind.REQUEST_UNREADABLE, path=paths.CLUSTER_ID, why=str(unreadable))
        return
    await emit(EventKind.CLUSTER_ID, id=found)
