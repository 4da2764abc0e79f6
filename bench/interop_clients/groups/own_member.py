"""A member of a group by this project's consumer, which leaves when its input ends.

    python own_member.py FILE VARIANT

FILE has the settings that `GroupMember.java` reads.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from watchkeeper import Consumer


def settings_in(text: str) -> dict[str, str]:
    """The settings of a file of properties."""
    lines = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in lines}


def member_of(settings: dict[str, str], variant: str) -> Consumer:
    """The consumer that these settings describe."""
    pattern, streams = settings.pop("pattern"), settings.pop("streams")
    subscription: dict[str, Any]
    if pattern == "static":
        parts = (each.rpartition(":") for each in streams.split(","))
        subscription = {"topics": {topic: int(count) for topic, _, count in parts}}
    else:
        expression, _, count = streams.rpartition(":")
        subscription = {pattern: expression, "streams": int(count)}
    return Consumer(
        settings.pop("zookeeper.connect"),
        group=settings.pop("group.id"),
        consumer_id=settings.pop("consumer.id"),
        variant=variant,
        config={name: _typed(value) for name, value in settings.items()},
        **subscription,
    )


def _typed(value: str) -> str | int | bool:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else value


def main(path: str, variant: str) -> None:
    """Join, and leave at the end of the input."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with member_of(settings_in(Path(path).read_text()), variant) as consumer:
        consumer.ready()
        print("joined", flush=True)
        sys.stdin.read()
    print("left", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
