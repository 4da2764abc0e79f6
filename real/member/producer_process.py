"""The process of a live producer: sends the loads that the world orders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from watchkeeper.model.actor.program import Ended
from watchkeeper.model.clients.compositions.load_generator import LoadGenerator
from watchkeeper.model.clients.compositions.load_producer import load_messages, load_producer
from watchkeeper.model.delivery.message_id import payload_of
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import ProducerRole
from watchkeeper.real.process.task_driver import TaskDriver

NUMBERS_OF_A_LIFE = 1_000_000_000
"""A killed producer has not reported the last sequence number that it used, so the next process
of its name starts far beyond it.
"""


def run(context: MemberContext) -> Ended:
    """Send until the program ends, then flush."""
    role = context.job.role
    assert isinstance(role, ProducerRole), "the job of a producer has its role"
    driver = context.task_driver(context.job.program, role.balancer)
    sender = _Sender(role, driver, context.report)
    context.channel.on("produce", sender.begin)
    context.channel.on("cease", sender.cease)
    context.listen(driver)
    ended = driver.run()
    sender.close()
    return ended


class _Sender:
    def __init__(
        self, role: ProducerRole, driver: TaskDriver, report: Callable[..., None]
    ) -> None:
        self.report = report
        self.plan = role.plan
        self.driver = driver
        self.producer = load_producer(role.plan)
        self.next = role.plan.first_number + (role.life - 1) * NUMBERS_OF_A_LIFE
        self.sendings: dict[int, LoadGenerator] = {}
        self.flowing: set[int] = set()

    def begin(self, message: dict[str, Any]) -> None:
        """Send messages of a topic at a rate from now on."""
        number, topic = message["produce"], message["topic"]
        sending = LoadGenerator(
            self.producer,
            topic,
            message["rate_per_1000_s"],
            make=load_messages(self.plan, partial(_payloads, self.plan.name, message["size"])),
            numbers=partial(self._numbers, number),
            keys=self.plan.keys,
        )
        self.sendings[number] = sending
        self.driver.start_task(f"send to {topic}", sending.run())

    def cease(self, message: dict[str, Any]) -> None:
        """Stop what `begin` started."""
        self.sendings.pop(message["cease"]).is_running = False

    def _numbers(self, of_load: int, count: int) -> int:
        if of_load not in self.flowing:
            self.flowing.add(of_load)
            self.report(flows=of_load)
        first, self.next = self.next, self.next + count
        return first

    def close(self) -> None:
        """Accept no further messages, and send what is waiting."""
        for sending in tuple(self.sendings.values()):
            sending.is_running = False
        self.driver.run_task(self.producer.close())


def _payloads(producer: str, size_bytes: int, first: int, count: int) -> tuple[bytes, ...]:
    return tuple(
        payload_of(producer, number, size_bytes) for number in range(first, first + count)
    )
