"""The messages that a producer sends to one partition, and their encoding in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from watchkeeper.model.actor.tasks import Compress
from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.log.format import message_set_07
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.contents import (
    ENTRY_OVERHEAD_BYTES,
    Contents,
    Series,
    SeriesRange,
    Wrapper,
    whole_series,
)
from watchkeeper.model.log.format.errors import MessageSizeTooLarge
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.requests import ProduceRequest

Encoder = Callable[[Any], bytes]
"""Encodes a message of the application as a payload."""

Messages = tuple[Any, ...] | Series
"""Several messages: inputs of an encoder, or a series of a simulation."""


def encode_bytes(message: Any) -> bytes:
    """Return a payload unchanged; raise `InvalidConfig` for anything but bytes."""
    if not isinstance(message, bytes):
        raise InvalidConfig(
            f"a message of type {type(message).__name__}",
            "the default encoder takes bytes; set serializer.class, or give an encoder",
        )
    return message


def encode_text(message: Any) -> bytes:
    """Encode text as UTF-8."""
    return str(message).encode()


ENCODERS: dict[str, Encoder] = {"default": encode_bytes, "string": encode_text}
"""Encoders by their name in `serializer.class`."""


class RecordBatch(NamedTuple):
    """Messages for one partition of one broker."""

    topic: str
    partition: int
    messages: Messages

    @property
    def size(self) -> int:
        """The number of messages."""
        return message_count(self.messages)

    def split(self, at: int) -> tuple[RecordBatch, RecordBatch]:
        """Split into the first `at` messages and the others."""
        messages = self.messages
        if isinstance(messages, Series):
            producer, first, count, size = (
                messages.producer,
                messages.first,
                messages.count,
                messages.payload_bytes,
            )
            head: Messages = Series(producer, first, at, size)
            tail: Messages = Series(producer, first + at, count - at, size)
        else:
            head, tail = messages[:at], messages[at:]
        return self._replace(messages=head), self._replace(messages=tail)


def message_count(messages: Messages) -> int:
    """Return the number of messages."""
    return messages.count if isinstance(messages, Series) else len(messages)


async def produce_request(
    outgoing: Sequence[RecordBatch], encode: Encoder, codec: int, *, largest_message_bytes: int
) -> ProduceRequest:
    """Encode batches for one partition as a produce request.

    Raises `MessageSizeTooLarge` if a payload, as stored (compressed, with a codec), exceeds
    `largest_message_bytes`.
    """
    topic, partition, _ = outgoing[0]
    parts = [batch.messages for batch in outgoing]
    contents, largest_bytes = await encode_contents(parts, encode, codec)
    if largest_bytes > largest_message_bytes:
        detail = f"{largest_bytes} bytes, {largest_message_bytes} are allowed"
        raise MessageSizeTooLarge(f"a message to {topic}", detail)
    return ProduceRequest(topic, partition, contents)


async def encode_contents(
    parts: Sequence[Messages], encode: Encoder, codec: int
) -> tuple[Contents, int]:
    """Encode messages as one message set; return it with the size of its largest payload.

    With a codec the set is compressed into one wrapper message, whose payload is the largest.
    """
    series = [part for part in parts if isinstance(part, Series)]
    payloads = [
        encode(payload) for part in parts if not isinstance(part, Series) for payload in part
    ]
    assert not (series and payloads), "a series is not sent together with payloads"
    if series and codec:
        wrapper = await _compressed(tuple(series), codec)
        return (SeriesRange(wrapper, 0, wrapper.size_bytes),), wrapper.payload_bytes
    if series:
        ranges = tuple(part for source in series for part in whole_series(source))
        return ranges, max(source.payload_bytes for source in series)
    contents = message_set_07.wrap([Message.of(payload) for payload in payloads], Codec(codec))
    if codec:
        return contents, len(contents) - ENTRY_OVERHEAD_BYTES
    return contents, max(map(len, payloads), default=0)


async def _compressed(parts: tuple[Series, ...], codec: int) -> Wrapper:
    """Compress series as the world says: messages without bytes have no size of their own."""
    plain = Wrapper(parts, codec, 0)
    payload_bytes = await Compress(codec, plain.count, plain.plain_bytes)
    return Wrapper(parts, codec, payload_bytes)


def group_by_partition(items: Iterable[RecordBatch]) -> list[list[RecordBatch]]:
    """Group batches by topic and partition, in the order of arrival."""
    found: dict[tuple[str, int], list[RecordBatch]] = {}
    for item in items:
        found.setdefault((item.topic, item.partition), []).append(item)
    return list(found.values())
