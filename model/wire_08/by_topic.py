"""Fields of partitions, grouped by topic, as most requests of 0.8 have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar

from watchkeeper.model.log.format.fields import INT32, STRING, FieldType, Reader, counted
from watchkeeper.model.log.format.frames import Field, WireStruct, struct_type
from watchkeeper.model.log.format.requests_08 import CONSUMER

T = TypeVar("T", covariant=True)

CORRELATION_ID = Field("correlation_id", INT32, "that of the request")
REPLICA_ID = Field("replica_id", INT32, f"the broker id of a replica; {CONSUMER}: a client")


class OfTopic(NamedTuple, Generic[T]):
    """A topic, and what a request or a response has of its partitions."""

    topic: str
    parts: tuple[T, ...]


def by_topic(item: FieldType) -> FieldType:
    """Return the type of a sequence of `OfTopic`, whose parts have the type `item`."""
    items = counted(INT32, item)

    def parts(value: OfTopic[Any]) -> Iterator[bytes]:
        yield from STRING.parts(value.topic)
        yield from items.parts(value.parts)

    def read(reader: Reader) -> OfTopic[Any]:
        topic: str = STRING.read(reader)
        return OfTopic(topic, items.read(reader))

    def size(value: OfTopic[Any]) -> int:
        return STRING.size_of(value.topic) + items.size_of(value.parts)

    smallest = STRING.smallest_bytes + items.smallest_bytes
    name = f"topic ({STRING.name}), {items.name}"
    return counted(INT32, FieldType(name, smallest, size, parts, read))


def topics_field(kind: type[WireStruct]) -> Field:
    """Return the field of values of this kind, grouped by topic."""
    return Field("topics", by_topic(struct_type(kind)), "the partitions of each topic")


def flat(topics: Iterable[OfTopic[T]]) -> Iterator[tuple[str, T]]:
    """Yield each part with its topic, in order."""
    for topic, parts in topics:
        for part in parts:
            yield topic, part


def grouped(parts: Iterable[tuple[str, T]]) -> tuple[OfTopic[T], ...]:
    """Group successive parts of one topic, in order: the inverse of `flat`."""
    return tuple(
        OfTopic(topic, tuple(part for _, part in some))
        for topic, some in groupby(parts, key=lambda one: one[0])
    )
