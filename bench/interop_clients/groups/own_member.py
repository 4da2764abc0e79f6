"""A member of a group by this project's consumer, which leaves when its input ends.

    python own_member.py FILE VARIANT

FILE has the settings that `GroupMember.java` reads. With `reads=true` the member is a
`Connector`: it reads messages, and prints where each of them is. Otherwise it is a `Consumer`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from watchkeeper import Connector, Consumer
from watchkeeper.model.registry.subscription import Pattern
from watchkeeper.real.embed.connector import MessageStream


class Wanted(NamedTuple):
    """What a member subscribes to."""

    pattern: str
    streams: Mapping[str, int]
    """Topic, or one regular expression -> streams."""


def settings_in(text: str) -> dict[str, str]:
    """The settings of a file of properties."""
    lines = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in lines}


def taken_wanted(settings: dict[str, str]) -> Wanted:
    """Take the subscription out of the settings."""
    pattern, streams = settings.pop("pattern"), settings.pop("streams")
    each = streams.split(",") if pattern == "static" else [streams]
    parts = (one.rpartition(":") for one in each)
    return Wanted(pattern, {name: int(count) for name, _, count in parts})


def arguments_of(settings: dict[str, str], variant: str) -> tuple[str, dict[str, Any]]:
    """The ZooKeeper, and the keyword arguments that consumers and connectors have in common."""
    hosts = settings.pop("zookeeper.connect")
    group, name = settings.pop("group.id"), settings.pop("consumer.id")
    config = {key: _typed(value) for key, value in settings.items()}
    return hosts, {"group": group, "consumer_id": name, "variant": variant, "config": config}


def _typed(value: str) -> str | int | bool:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else value


def consumer_of(settings: dict[str, str], variant: str) -> Consumer:
    """The consumer that these settings describe."""
    wanted = taken_wanted(settings)
    hosts, given = arguments_of(settings, variant)
    if wanted.pattern == "static":
        return Consumer(hosts, topics=wanted.streams, **given)
    [(expression, streams)] = wanted.streams.items()
    filtered: dict[str, Any] = {wanted.pattern: expression, "streams": streams}
    return Consumer(hosts, **filtered, **given)


def streams_of(connector: Connector, wanted: Wanted) -> Iterable[MessageStream[Any]]:
    """Join the group, and return the streams."""
    if wanted.pattern == "static":
        of_topics = connector.create_message_streams(wanted.streams).values()
        return [stream for streams in of_topics for stream in streams]
    [(expression, count)] = wanted.streams.items()
    pattern: Pattern = "white_list" if wanted.pattern == "white_list" else "black_list"
    return connector.create_message_streams_by_filter(expression, count, pattern)


def show(stream: MessageStream[Any]) -> None:
    """Print where each message is, until the connector is shut down."""
    for message in stream:
        topic, number = message.partition
        sys.stdout.write(f"read {topic} {number} {message.offset}\n")
        sys.stdout.flush()


def main(path: str, variant: str) -> None:
    """Join, and leave at the end of the input."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = settings_in(Path(path).read_text())
    member: Connector | Consumer
    if settings.pop("reads", "") == "true":
        wanted = taken_wanted(settings)
        hosts, given = arguments_of(settings, variant)
        member = Connector(hosts, protocol="0.8", **given)
        for stream in streams_of(member, wanted):
            Thread(target=show, args=(stream,), daemon=True).start()
    else:
        member = consumer_of(settings, variant)
    with member:
        member.ready()
        print("joined", flush=True)
        sys.stdin.read()
    print("left", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
