"""The process of a live producer: it sends what the world tells it to."""

from __future__ import annotations

from functools import partial
from typing import Any

from model.clients.identities import payload_of
from model.clients.loading import Sending
from model.clients.producer import Producer
from model.program import Ended
from real.job import Sends
from real.joint import JointDriver
from real.workplace import Workplace, say

NUMBERS_OF_A_LIFE = 1_000_000_000
"""A producer that was killed has told nobody which numbers it had used last; the next process
of its name begins far beyond them."""


def run(place: Workplace) -> Ended:
    """Send until it is over, and then what is still waiting."""
    part = place.job.part
    assert isinstance(part, Sends), "it is told what to send"
    driver = place.joint_driver(place.job.program, part.balancer)
    sender = _Sender(part, driver)
    place.channel.on("produce", sender.begin)
    place.channel.on("cease", sender.cease)
    place.listen(driver)
    ended = driver.run()
    sender.close()
    return ended


class _Sender:
    def __init__(self, part: Sends, driver: JointDriver) -> None:
        self.plan = part.plan
        self.driver = driver
        self.producer = Producer(part.plan.settings, name=part.plan.name)
        self.next = (part.life - 1) * NUMBERS_OF_A_LIFE
        self.sendings: dict[int, Sending] = {}
        self.flowing: set[int] = set()

    def begin(self, message: dict[str, Any]) -> None:
        """Send messages of a topic at a rate from now on."""
        number, topic = message["produce"], message["topic"]
        sending = Sending(
            self.producer,
            topic,
            message["rate_per_1000_s"],
            make=partial(_payloads, self.plan.name, message["size"]),
            numbers=partial(self._numbers, number),
            keys=self.plan.keys,
        )
        self.sendings[number] = sending
        self.driver.start_thread(f"send to {topic}", sending.run())

    def cease(self, message: dict[str, Any]) -> None:
        """Cease what `begin` began."""
        self.sendings.pop(message["cease"]).is_on = False

    def _numbers(self, of_load: int, count: int) -> int:
        if of_load not in self.flowing:
            self.flowing.add(of_load)
            say(flows=of_load)
        first, self.next = self.next, self.next + count
        return first

    def close(self) -> None:
        """Take nothing more from the application, and send what is waiting."""
        for sending in tuple(self.sendings.values()):
            sending.is_on = False
        self.driver.run_thread(self.producer.close())


def _payloads(producer: str, size_bytes: int, first: int, count: int) -> tuple[bytes, ...]:
    return tuple(
        payload_of(producer, number, size_bytes) for number in range(first, first + count)
    )
