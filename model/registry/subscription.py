"""The subscription of a consumer, and its registration in both layouts.

0.7  { "topic": n }, *n*regex (a white list) or !n!regex (a black list)
0.8  JSON: subscription, pattern, timestamp
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from watchkeeper.model.registry.paths import BadPayload, Layout, as_text, decode_json

Pattern = Literal["static", "white_list", "black_list"]


class Subscription(Struct, frozen=True, cache_hash=True):
    """Topics with a number of streams each, or a filter with streams for all its topics."""

    streams: tuple[tuple[str, int], ...] = ()
    pattern: Pattern = "static"
    expression: str = ""
    filter_streams: int = 0

    @property
    def is_filter(self) -> bool:
        """Whether topics are chosen by a regular expression."""
        return self.pattern != "static"


def encode_consumer(subscription: Subscription, layout: Layout, *, timestamp_ms: int) -> bytes:
    """Write a consumer's registration."""
    if layout == "0.7":
        return _encode_consumer_07(subscription)
    return _encode_consumer_08(subscription, timestamp_ms)


def _encode_consumer_07(subscription: Subscription) -> bytes:
    if subscription.is_filter:
        mark = "*" if subscription.pattern == "white_list" else "!"
        return f"{mark}{subscription.filter_streams}{mark}{subscription.expression}".encode()
    entries = ",".join(f'"{name}": {count}' for name, count in subscription.streams)
    return f"{{ {entries} }}".encode()


def _encode_consumer_08(subscription: Subscription, timestamp_ms: int) -> bytes:
    if subscription.is_filter:
        wanted = f"{escape_expression(subscription.expression)}:{subscription.filter_streams}"
    else:
        wanted = ",".join(f"{json.dumps(name)}:{count}" for name, count in subscription.streams)
    return (
        f'{{"pattern":"{subscription.pattern}","subscription":{{{wanted}}},'
        f'"timestamp":"{timestamp_ms}","version":1}}'
    ).encode()


def escape_expression(expression: str) -> str:
    """A filter's regular expression as a JSON string the way Kafka 0.8.2 escapes it."""
    return json.dumps(expression, ensure_ascii=False).replace("/", "\\/")


_FILTER_07 = re.compile(r"([*!])(\d{1,6})\1(.*)", re.DOTALL)
_FILTER_PATTERNS: dict[str, Pattern] = {"*": "white_list", "!": "black_list"}


@lru_cache(maxsize=65_536)
def decode_consumer(path: str, data: bytes | None) -> Subscription:
    """Read a consumer's registration of either layout."""
    expected = '{ "topic": streams }, *n*regex, !n!regex or 0.8 JSON'
    found = _FILTER_07.fullmatch(as_text(path, data, expected))
    if found is not None:
        return Subscription(
            pattern=_FILTER_PATTERNS[found[1]],
            expression=found[3],
            filter_streams=int(found[2]),
        )
    value = decode_json(path, data, expected)
    if isinstance(value.get("subscription"), dict):
        return _decode_consumer_08(path, data, value)
    return Subscription(streams=_streams(path, data, value))


def _decode_consumer_08(path: str, data: bytes | None, value: dict[str, Any]) -> Subscription:
    pattern = value.get("pattern")
    if pattern not in ("static", "white_list", "black_list"):
        raise BadPayload(path, data, "a pattern of static, white_list or black_list")
    streams = _streams(path, data, value["subscription"])
    if pattern == "static" or not streams:
        return Subscription(streams=streams)
    if len(streams) != 1:
        raise BadPayload(path, data, "one regular expression with its number of streams")
    [(expression, count)] = streams
    return Subscription(pattern=pattern, expression=expression, filter_streams=count)


def _streams(path: str, data: bytes | None, value: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    for name, count in value.items():
        if type(count) is not int or count < 0:
            raise BadPayload(path, data, f"a number of streams for {name!r}")
    return tuple(value.items())
