"""The assignments of topics to brokers, as far as a trace has them."""

from __future__ import annotations

from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.trace.text import LONGEST_DATA


def topic_of(path: str) -> str | None:
    """The topic of the path of a topic; None for any other path."""
    topic = path.removeprefix(f"{paths.TOPICS}/")
    return None if topic == path or "/" in topic else topic


def assignment_of(path: str, data: str) -> TopicAssignment | None:
    """The assignment in a trace; None if it was cut, or is none."""
    if len(data) >= LONGEST_DATA:
        return None
    try:
        return TopicAssignment.decode(path, data.encode())
    except BadPayload:
        return None
