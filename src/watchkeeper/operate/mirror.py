"""The command `mirror`: copy the topics of a cluster to another one, until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from time import monotonic
from typing import Any

from watchkeeper.console.credentials import Credentials
from watchkeeper.console.exit import HOLDS, USAGE, VIOLATED, Stop
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.operate.broker import FORM, pair, say
from watchkeeper.real.embed.member import LEAVE_WITHIN_S
from watchkeeper.real.embed.mirror import Mirror, MirrorStatus
from watchkeeper.real.supervise.child_process import end_with_parent

READY_WITHIN_S = 5.0
LOOK_S = 0.2
FLAGS = {"true": True, "false": False}


def run(
    hosts: str,
    *,
    brokers: str,
    group: str,
    topics: str,
    commits: Any,
    consumer_settings: Iterable[str],
    producer_settings: Iterable[str],
    every_s: float,
    credentials: Credentials,
) -> int:
    """Mirror until a signal comes; print a line for its begin, its counts and its end."""
    INTERRUPTS.raise_from_now_on()
    end_with_parent()
    _log_to_standard_error()
    try:
        mirror = Mirror(
            hosts,
            brokers=brokers,
            group=group,
            topics=topics,
            commits=commits,
            config=dict(map(_setting, consumer_settings)),
            producer=dict(map(_setting, producer_settings)),
            kazoo=dict(credentials.access(hosts).options),
        )
    except ValueError as error:
        raise Stop(USAGE, str(error)) from None
    return _mirrored(mirror, f"mirror {group}", f"{hosts} to {brokers}", every_s)


def _setting(text: str) -> tuple[str, Any]:
    """Return key and value of a setting; numbers, true and false are what they look like."""
    key, value = pair(text)
    if value in FLAGS:
        return key, FLAGS[value]
    return key, int(value) if value.lstrip("-").isdecimal() else value


def _mirrored(mirror: Mirror, name: str, way: str, every_s: float) -> int:
    """Run a mirror; return the exit code."""
    mirror.start()
    say(f"{name} copies from {way}")
    try:
        _wait(mirror, name, every_s)
    except KeyboardInterrupt:
        say(f"{name} ends, and sends what waits")
    has_left = mirror.close(LEAVE_WITHIN_S)
    say(f"{name} has ended: {counts_text(mirror.status)}")
    if mirror.ended is not None and mirror.ended.failed and not INTERRUPTS.came:
        raise Stop(VIOLATED, f"{name} failed: {mirror.ended.reason}")
    is_whole = mirror.status.read == mirror.status.arrived
    return HOLDS if is_whole and (has_left or not mirror.status.sessions) else VIOLATED


def _wait(mirror: Mirror, name: str, every_s: float) -> None:
    """Wait until the mirror ends by itself, and print its counts when they have changed."""
    _say_ready(mirror, name)
    said, due_s = mirror.status, monotonic() + every_s
    while mirror.wait_ended(LOOK_S) is None:
        if monotonic() < due_s:
            continue
        due_s = monotonic() + every_s
        if mirror.status != said:
            said = mirror.status
            say(f"{name}: {counts_text(said)}")


def _say_ready(mirror: Mirror, name: str) -> None:
    try:
        mirror.ready(READY_WITHIN_S)
    except TimeoutError as error:
        say(f"{name} is not ready: {error}; it goes on trying")
    except RuntimeError:  # it has failed, which its end says
        return
    else:
        partitions = counted(len(mirror.owned), "partition")
        say(f"{name} is a member of its group, with {partitions}")


def counts_text(status: MirrorStatus) -> str:
    """Return the counts of a mirror in words."""
    more = {"failed attempts to send": status.failed_sends, "failed turns": status.failed_turns}
    shown = "".join(f", {number:,} {what}" for what, number in more.items() if number)
    return f"{counted(status.read, 'message')} read, {status.arrived:,} arrived{shown}"


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORM))
    logger = logging.getLogger("watchkeeper.mirror")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
