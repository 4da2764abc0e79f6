"""The process of a broker that replicates: opens its replicas, and runs until a signal."""

from __future__ import annotations

import asyncio

from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.storage import StorageError
from watchkeeper.real.broker.log_server import HOST, bound_socket
from watchkeeper.real.embed.broker_server import ENDING, Say
from watchkeeper.real.embed.member import CONNECTS_WITHIN_S
from watchkeeper.real.replica_broker.broker import ReplicaBroker
from watchkeeper.real.replica_broker.settings import ReplicaBrokerSettings

LEAVE_WITHIN_S = 60.0
"""How long handing over what it leads, and the end of its session, may take."""
LOOKS_EVERY_S = 0.05


def run_replica_broker(settings: ReplicaBrokerSettings, hosts: str, say: Say) -> str:
    """Run a broker in this process until a signal ends it; return why it failed, or "".

    Calls `say` with a sentence when the broker listens, and when it is registered.
    """
    return asyncio.run(_run(settings, hosts, say))


async def _run(settings: ReplicaBrokerSettings, hosts: str, say: Say) -> str:
    number = settings.replication.broker_id
    with bound_socket(settings.port) as listener:
        broker = ReplicaBroker(settings, hosts, listener)
        ending = asyncio.Event()
        for signal_number in ENDING:
            asyncio.get_running_loop().add_signal_handler(signal_number, ending.set)
        try:
            count = await asyncio.to_thread(broker.open)
        except (LogError, StorageError) as error:
            return f"the logs cannot be opened: {error}"
        port = listener.getsockname()[1]
        found = f"{count} logs" if count else "no logs yet"
        say(f"broker {number} of Kafka 0.8 listens on {HOST}:{port}: {found}; it replicates")
        broker.start()
        looking = asyncio.create_task(_tell(broker, number, say))
        over = asyncio.create_task(broker.await_ended())
        asked = asyncio.create_task(ending.wait())
        await asyncio.wait((over, asked), return_when=asyncio.FIRST_COMPLETED)
        looking.cancel()
        asked.cancel()
        if not over.done():
            await broker.aclose(LEAVE_WITHIN_S)
        await asyncio.gather(over, return_exceptions=True)
        if ending.is_set():
            return broker.failure
        return broker.failure or "its registration has ended"


async def _tell(broker: ReplicaBroker, number: int, say: Say) -> None:
    """Say when the broker is registered, and why it is not, if no ZooKeeper answers."""
    await asyncio.sleep(CONNECTS_WITHIN_S)
    problem = await asyncio.to_thread(broker.look_for_zookeeper)
    if problem:
        say(f"broker {number} is not registered: {problem}; it goes on trying")
    while not broker.status.is_registered:
        await asyncio.sleep(LOOKS_EVERY_S)
    say(f"broker {number} is registered")
