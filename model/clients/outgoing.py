"""What a producer is given, and what it makes of it: the contents of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from model.clients.errors import InvalidConfig
from model.log import message_set
from model.log.codecs import Codec
from model.log.contents import ENTRY_OVERHEAD_BYTES, Contents, Series, whole
from model.log.errors import MessageSizeTooLarge
from model.log.message import Message
from model.log.requests import ProduceRequest

Encoder = Callable[[Any], bytes]
"""Makes a payload of what an application sends."""

Messages = tuple[Any, ...] | Series
"""Several messages: what an encoder takes, one by one, or a series of a simulation."""


def as_it_is(message: Any) -> bytes:
    """A payload is sent as it is."""
    if not isinstance(message, bytes):
        raise InvalidConfig(
            f"a message of type {type(message).__name__}",
            "the default encoder takes bytes; set serializer.class, or give an encoder",
        )
    return message


def as_text(message: Any) -> bytes:
    """Text is sent in UTF-8."""
    return str(message).encode()


ENCODERS: dict[str, Encoder] = {"default": as_it_is, "string": as_text}
"""Those that have a name, for settings."""


class Outgoing(NamedTuple):
    """Messages that go to one partition of one broker."""

    topic: str
    partition: int
    messages: Messages

    @property
    def size(self) -> int:
        """How many they are."""
        return size_of(self.messages)

    def split(self, at: int) -> tuple[Outgoing, Outgoing]:
        """The first so many of them, and the others."""
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


def size_of(messages: Messages) -> int:
    """How many messages they are."""
    return messages.count if isinstance(messages, Series) else len(messages)


def request_of(
    outgoing: Sequence[Outgoing], encode: Encoder, codec: int, *, largest_message_bytes: int
) -> ProduceRequest:
    """The request that brings these to their partition, which is the same for all.

    `MessageSizeTooLarge` if a payload is larger than is to be sent, as it is sent.
    """
    topic, partition, _ = outgoing[0]
    contents, largest_bytes = contents_of([one.messages for one in outgoing], encode, codec)
    if largest_bytes > largest_message_bytes:
        detail = f"{largest_bytes} bytes, {largest_message_bytes} are allowed"
        raise MessageSizeTooLarge(f"a message to {topic}", detail)
    return ProduceRequest(topic, partition, contents)


def contents_of(parts: Sequence[Messages], encode: Encoder, codec: int) -> tuple[Contents, int]:
    """All of these messages, one behind the other, and the size of the largest payload.

    With a codec they are compressed into one message, and that is its payload.
    """
    series = [part for part in parts if isinstance(part, Series)]
    payloads = [encode(one) for part in parts if not isinstance(part, Series) for one in part]
    assert not (series and payloads), "a series is not sent together with payloads"
    if series:
        pieces = tuple(piece for one in series for piece in whole(one))
        return pieces, max(one.payload_bytes for one in series)
    contents = message_set.wrap([Message.of(one) for one in payloads], Codec(codec))
    if codec:
        return contents, len(contents) - ENTRY_OVERHEAD_BYTES
    return contents, max(map(len, payloads), default=0)


def collated(items: Iterable[Outgoing]) -> list[list[Outgoing]]:
    """What goes to one partition of one topic together, in the order in which it came."""
    found: dict[tuple[str, int], list[Outgoing]] = {}
    for item in items:
        found.setdefault((item.topic, item.partition), []).append(item)
    return list(found.values())
