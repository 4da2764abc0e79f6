"""The process of a broker, of 0.7 or 0.8: it opens its logs, registers, and ends at a signal."""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

from watchkeeper.model.actor.events import Command, Notification
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.log_manager import StartReport
from watchkeeper.model.log.storage import StorageError
from watchkeeper.real.broker.log_server import HOST, LogServer
from watchkeeper.real.broker.server import Broker
from watchkeeper.real.broker.server_08 import Broker08
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.broker.settings_08 import BrokerSettings08
from watchkeeper.real.embed.broker import Broker as Registration
from watchkeeper.real.embed.broker import BrokerWithTasks
from watchkeeper.real.embed.member import CONNECTS_WITHIN_S

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LEAVE_WITHIN_S = 5.0
"""How long the removal of a registration may take; after that the session has to expire."""

Say = Callable[[str], None]
B = TypeVar("B", Broker, Broker08)


@dataclass(frozen=True, slots=True)
class InZooKeeper:
    """The ZooKeeper that a broker registers with, the variant, and its session timeout."""

    hosts: str
    variant: str = "hardened"
    session_timeout_ms: int = 6000


def run_broker(settings: BrokerSettings, zookeeper: InZooKeeper | None, say: Say) -> str:
    """Run a broker in this process until a signal ends it; return why it failed, or "".

    The class of the settings says which protocol it serves. Calls `say` with a sentence when the
    broker listens, and when it is registered.
    """
    if isinstance(settings, BrokerSettings08):
        return asyncio.run(_Process08(settings, zookeeper, say).run())
    return asyncio.run(_Process07(settings, zookeeper, say).run())


class _Process(ABC, Generic[B]):
    protocol: ClassVar[str]

    def __init__(self, settings: BrokerSettings, zookeeper: InZooKeeper | None, say: Say) -> None:
        self.settings = settings
        self.zookeeper = zookeeper
        self.say = say
        self.registration: Registration | None = None

    @abstractmethod
    def _broker(self) -> B:
        """Return the broker, which is not open yet."""

    @abstractmethod
    def _registration(self, broker: B, zookeeper: InZooKeeper) -> Registration:
        """Return the registration of a broker that is open, started."""

    async def run(self) -> str:
        broker = self._broker()
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, broker.end)
        try:
            started = await broker.open()
        except (LogError, StorageError) as error:
            broker.abandon()
            return f"the logs cannot be opened: {error}"
        self.say(self._opened(broker, started))
        watching = self._register(broker)
        why = await broker.over()
        await self._unregister(watching)
        self._left(broker)
        if why:
            broker.abandon()
            return why
        return await _closed(broker)

    def _opened(self, broker: B, started: StartReport) -> str:
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
        return (
            f"broker {number} of Kafka {self.protocol} listens on {HOST}:{broker.port}: {found}"
        )

    def _left(self, broker: B) -> None:
        """The registration is over, if there was one."""

    # --- ZooKeeper ---------------------------------------------------------------------

    def _register(self, broker: B) -> asyncio.Task[None] | None:
        """Register the broker and what belongs to it in ZooKeeper."""
        if self.zookeeper is None:
            return None
        self.registration = self._registration(broker, self.zookeeper)
        return asyncio.get_running_loop().create_task(self._watch(broker, self.registration))

    async def _watch(self, broker: B, registration: Registration) -> None:
        """Report the registration; end the broker if its registration ends by itself."""
        looking = asyncio.create_task(self._look_for_zookeeper(registration))
        while not registration.status.is_registered and registration.ended is None:
            await asyncio.sleep(0.05)
        looking.cancel()
        if registration.ended is None:
            self.say(f"broker {self.settings.broker_id} is registered")
        ended = await registration.await_ended()
        assert ended is not None, "it was waited for without a limit"
        broker.end(f"its registration has ended: {ended.reason}")

    async def _look_for_zookeeper(self, registration: Registration) -> None:
        """Say why no ZooKeeper answers, if none does soon; the broker serves all the same."""
        await asyncio.sleep(CONNECTS_WITHIN_S)
        problem = await asyncio.to_thread(registration.look_for_zookeeper)
        if problem:
            number = self.settings.broker_id
            self.say(f"broker {number} is not registered: {problem}; it goes on trying")

    async def _unregister(self, watching: asyncio.Task[None] | None) -> None:
        if self.registration is not None and watching is not None:
            await self.registration.aclose(LEAVE_WITHIN_S)
            await asyncio.gather(watching, return_exceptions=True)


class _Process07(_Process[Broker]):
    """A broker of 0.7, which registers its topics too."""

    protocol = "0.7"

    def _broker(self) -> Broker:
        import_module(
            "watchkeeper.model.log.format.bulk_checksum"
        )  # now, so that no request has to wait for it
        return Broker(self.settings, self._remind)

    def _remind(self, notification: Notification) -> None:
        if self.registration is not None and isinstance(notification, Command):
            self.registration.tell(notification)

    def _registration(self, broker: Broker, zookeeper: InZooKeeper) -> Registration:
        topics = {
            topic: broker.logs.settings.of(topic).partitions for topic in broker.logs.topics
        }
        return Registration(
            zookeeper.hosts,
            id=self.settings.broker_id,
            host=HOST,
            port=broker.port,
            topics=topics,
            variant=zookeeper.variant,
            layout=self.protocol,
            session_timeout_ms=zookeeper.session_timeout_ms,
        ).start()


class _Process08(_Process[Broker08]):
    """A broker of 0.8, whose requests use the session of its registration."""

    protocol = "0.8"
    settings: BrokerSettings08

    def _broker(self) -> Broker08:
        return Broker08(self.settings, has_registry=self.zookeeper is not None)

    def _registration(self, broker: Broker08, zookeeper: InZooKeeper) -> Registration:
        registration = BrokerWithTasks(
            zookeeper.hosts,
            id=self.settings.broker_id,
            host=HOST,
            port=broker.port,
            variant=zookeeper.variant,
            layout=self.protocol,
            session_timeout_ms=zookeeper.session_timeout_ms,
        ).start()
        broker.use(registration.driver.operate_for_task)
        return registration

    def _left(self, broker: Broker08) -> None:
        broker.disconnect()


async def _closed(broker: LogServer[Any]) -> str:
    try:
        await broker.close()
    except (LogError, StorageError) as error:
        return f"the logs could not be closed: {error}"
    return ""
