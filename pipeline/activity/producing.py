"""Sends events, one after the other, by whatever sends that one is handed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from pipeline.activity.events import TOPICS, Event, topic_of
from pipeline.activity.generator import encoded

Send = Callable[[str, str, bytes], Awaitable[None]]
"""Sends a payload to a topic; its key says with what it keeps together."""


async def produce(events: Iterable[Event], send: Send) -> Counter[str]:
    """Send every event; how many went to each topic."""
    sent: Counter[str] = Counter()
    for event in events:
        topic = topic_of(event)
        await send(topic, TOPICS[topic].key(event), encoded(event))
        sent[topic] += 1
    return sent
