"""What a producer sends with: one sender for each broker that it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from model.clients.batching import BatchingSender
from model.clients.errors import QueueClosed, UnavailableProducer
from model.clients.sending import Sender

S = TypeVar("S", Sender, BatchingSender)


class Pool(Generic[S]):
    """The senders of one producer, by the ids of their brokers."""

    def __init__(self, make: Callable[[int, str], S]) -> None:
        self.make: Callable[[int, str], S] = make
        """Makes the sender for a broker that listens at an address."""
        self.senders: dict[int, S] = {}
        self.retired: list[S] = []
        self.is_closed = False

    async def follow(self, brokers: Iterable[tuple[int, str]]) -> None:
        """Have a sender for each of these brokers, at its address, and for no other."""
        alive = dict(brokers)
        for broker, sender in list(self.senders.items()):
            if alive.get(broker) != sender.address:
                self.retired.append(self.senders.pop(broker))
                await sender.retire()
        for broker, address in alive.items():
            if self.is_closed:
                raise QueueClosed("the pool")
            if broker not in self.senders:
                sender = self.senders[broker] = self.make(broker, address)
                await sender.start()

    def sender(self, broker: int) -> S:
        """The sender for a broker."""
        found = self.senders.get(broker)
        if found is None:
            raise UnavailableProducer(f"broker {broker}", f"there are {sorted(self.senders)}")
        return found

    async def close(self) -> None:
        """Send what is left, and close every connection; nothing is made any more."""
        self.is_closed = True
        for sender in (*self.retired, *self.senders.values()):
            await sender.close()
