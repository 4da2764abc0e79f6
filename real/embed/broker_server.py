"""The process of a broker: it opens its logs, registers itself, and ends when it is told to."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from model.answers import Note, Ordered
from model.log.errors import LogError
from model.log.logs import Started
from model.log.storage import StorageError
from real.broker import HOST, Broker
from real.broker_settings import BrokerSettings
from real.registering import Broker as Registration

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LEAVE_WITHIN_S = 5.0
"""What is registered longer than that goes when its session expires."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class InZooKeeper:
    """Where a broker registers itself, and as what."""

    hosts: str
    variant: str = "hardened"
    session_timeout_ms: int = 6000


def run_broker(settings: BrokerSettings, zookeeper: InZooKeeper | None, say: Say) -> str:
    """Run a broker in this process until it is told to end; else the reason why it cannot go on.

    `say` is told when it listens, and when it is registered.
    """
    return asyncio.run(_Process(settings, zookeeper, say).run())


class _Process:
    def __init__(self, settings: BrokerSettings, zookeeper: InZooKeeper | None, say: Say) -> None:
        self.settings = settings
        self.zookeeper = zookeeper
        self.say = say
        self.registration: Registration | None = None

    async def run(self) -> str:
        import_module("model.log.at_once")  # now, so that no request has to wait for it
        broker = Broker(self.settings, self._remind)
        loop = asyncio.get_running_loop()
        for one in ENDING:
            loop.add_signal_handler(one, broker.end)
        try:
            started = await broker.open()
        except (LogError, StorageError) as error:
            broker.abandon()
            return f"the logs cannot be opened: {error}"
        self.say(self._opened(broker, started))
        watching = self._register(broker)
        why = await broker.over()
        await self._unregister(watching)
        if why:
            broker.abandon()
            return why
        return await _closed(broker)

    def _remind(self, note: Note) -> None:
        if self.registration is not None and isinstance(note, Ordered):
            self.registration.tell(note)

    def _opened(self, broker: Broker, started: Started) -> str:
        count = len(broker.logs.all())
        found = f"{count} logs" if count else "no logs yet"
        if count and not started.was_clean:
            cut = ", ".join(
                f"{count} bytes cut off {where}" for where, count in started.cut_bytes
            )
            found += f", recovered ({cut or 'nothing cut off'})"
        if started.ignored:
            found += f"; what belongs to no log: {', '.join(started.ignored)}"
        number = self.settings.broker_id
        return f"broker {number} listens on {HOST}:{broker.port}: {found}"

    # --- ZooKeeper ---------------------------------------------------------------------

    def _register(self, broker: Broker) -> asyncio.Task[None] | None:
        """Say in ZooKeeper that it is there, and which topics it has."""
        if self.zookeeper is None:
            return None
        topics = {
            topic: broker.logs.settings.of(topic).partitions for topic in broker.logs.topics
        }
        self.registration = Registration(
            self.zookeeper.hosts,
            id=self.settings.broker_id,
            host=HOST,
            port=broker.port,
            topics=topics,
            variant=self.zookeeper.variant,
            layout="0.7",
            session_timeout_ms=self.zookeeper.session_timeout_ms,
        ).start()
        return asyncio.get_running_loop().create_task(self._watch(broker, self.registration))

    async def _watch(self, broker: Broker, registration: Registration) -> None:
        """Say when it is registered; a registration that ends by itself ends the broker."""
        while not registration.status.is_registered and registration.ended is None:
            await asyncio.sleep(0.05)
        if registration.ended is None:
            self.say(f"broker {self.settings.broker_id} is registered")
        ended = await registration.aover()
        assert ended is not None, "it was waited for without a limit"
        broker.end(f"its registration has ended: {ended.reason}")

    async def _unregister(self, watching: asyncio.Task[None] | None) -> None:
        if self.registration is not None and watching is not None:
            await self.registration.aclose(LEAVE_WITHIN_S)
            await asyncio.gather(watching, return_exceptions=True)


async def _closed(broker: Broker) -> str:
    try:
        await broker.close()
    except (LogError, StorageError) as error:
        return f"the logs could not be closed: {error}"
    return ""
