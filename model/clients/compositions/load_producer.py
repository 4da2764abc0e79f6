"""The producer of a load, and its messages: by the protocol that the brokers speak.

A producer of 0.7 sends payloads that have its name and a number. One of 0.8 sends the values that
brokers which replicate account for, and the trace says what leaders have confirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from watchkeeper.model.actor.effects import emit
from watchkeeper.model.clients.compositions.kafka_07 import clients_of
from watchkeeper.model.clients.producer.producer import Producer
from watchkeeper.model.clients.producer.record_batch import Messages
from watchkeeper.model.clients_08.dispatcher import Acknowledged
from watchkeeper.model.clients_08.producer import Producer08
from watchkeeper.model.clients_08.settings import ProducerSettings08
from watchkeeper.model.plan.plan import ProducerPlan
from watchkeeper.model.replication.messages import number_in, sent_value
from watchkeeper.model.trace.kinds import EventKind

Make = Callable[[int, int], Messages]
"""Makes messages, by the number of the first one and their count."""


def load_producer(plan: ProducerPlan) -> Producer | Producer08:
    """Return the producer of a plan, which sends nothing yet."""
    settings = plan.settings
    if isinstance(settings, ProducerSettings08):
        return Producer08(
            settings, name=plan.name, confirm=partial(_note_acknowledged, settings.acks)
        )
    producer: Producer = clients_of(plan.variant).producer(settings, name=plan.name)
    return producer


def load_messages(plan: ProducerPlan, make_07: Make) -> Make:
    """Return what makes the messages of a producer; `make_07` does so for one of 0.7."""
    if plan.replicates:
        return partial(_values, plan.name)
    return make_07


def _values(producer: str, first: int, count: int) -> tuple[bytes, ...]:
    return tuple(sent_value(producer, number) for number in range(first, first + count))


async def _note_acknowledged(acks: int, done: Acknowledged) -> None:
    numbers = [number_in(each.value, "a message of a load") for each in done.messages]
    await emit(
        EventKind.ACKNOWLEDGED,
        topic=done.topic,
        partition=str(done.partition),
        numbers=numbers,
        acks=acks,
        start=done.offset,
    )
