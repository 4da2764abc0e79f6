"""The process that sends the loads of a timeline to a live cluster that replicates.

It has tasks and no session: producers of 0.8 do not talk to ZooKeeper.
"""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import Any, NoReturn

from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.clients.producer.steady_load import SteadyLoad, Writer
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import WriterRole
from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.process.tasks import Tasks


def run(context: MemberContext) -> NoReturn:
    """Send what the world orders, until the process is ended."""
    role = context.job.role
    assert isinstance(role, WriterRole), "the job of a writer has its role"
    sender = _Sender(role, context)
    context.channel.on("produce", sender.begin)
    context.channel.on("cease", sender.cease)
    context.channel.is_ready.set()
    while True:
        Event().wait()


class _Sender:
    def __init__(self, role: WriterRole, context: MemberContext) -> None:
        self.role = role
        self.context = context
        self.writer = Writer(role.brokers)
        self.loop = Loop(f"{context.job.node} tasks")
        self.tasks = Tasks(
            remind=lambda notification: None,
            failed=context.task_failed,
            where=context.address_map("").where,
        )
        self.tasks.answer_immediately(Emit, self._emit)
        self.loads: dict[int, SteadyLoad] = {}
        self.flowing: dict[int, None] = {}

    def begin(self, message: dict[str, Any]) -> None:
        """Send messages to a topic at a rate from now on."""
        number, topic = message["produce"], message["topic"]
        load = self.loads[number] = SteadyLoad(
            self.writer,
            topic,
            message["rate_per_1000_s"],
            message["acks"],
            partial(self._flows, number),
        )
        self.loop.begin(self._start(load)).result()

    def cease(self, message: dict[str, Any]) -> None:
        """Stop what `begin` started."""
        self.loads.pop(message["cease"]).is_running = False

    async def _start(self, load: SteadyLoad) -> None:
        self.tasks.start(f"write to {load.topic}", load.run())

    def _flows(self, number: int) -> None:
        if number not in self.flowing:
            self.flowing[number] = None
            self.context.report(flows=number)

    def _emit(self, effect: Emit) -> None:
        self.context.writer.write(effect.kind, dict(effect.detail), topic=effect.topic)
