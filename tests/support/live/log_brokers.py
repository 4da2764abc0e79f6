"""Brokers of this project that serve logs which a test has built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.live.broker_process import AT_ONCE, BrokerProcess
from tests.support.live.broker_process import brokers as processes
from tests.support.log.kafka_logs import BuiltLog, in_turn, written
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.log_manager import CLEANLY_CLOSED

PER_BROKER = 2
"""Partitions of a topic at each broker."""
SETTINGS = {
    "0.7": (*AT_ONCE, f"num.partitions={PER_BROKER}"),
    "0.8": ("auto.create.topics.enable=false",),
}


def served_logs(form: str) -> dict[str, BuiltLog]:
    """The logs of two brokers of 0.7, or of one of 0.8, by folder."""
    other = "2" if form == "0.7" else "1"
    last = Codec.SNAPPY if form == "0.7" else Codec.LZ4
    return {
        "1/clicks-0": in_turn(form, 10),
        "1/clicks-1": in_turn(form, 7, Codec.GZIP),
        f"{other}/views-0": in_turn(form, 9, last, rolls_every=3),
    }


def started(
    start: object, form: str, number: int, *more: str, settings: tuple[str, ...] = ()
) -> BrokerProcess:
    """Start a broker with an id."""
    assert callable(start), "it starts brokers"
    options = ("--protocol", form, "--id", str(number), *more)
    broker: BrokerProcess = start(*SETTINGS[form], *settings, more=options)
    return broker


def ended_well(folder: Path) -> None:
    """Let a broker take its logs as they are, and not look for damage at their ends."""
    (folder / CLEANLY_CLOSED).touch()


@contextmanager
def serving(form: str, home: Path, logs: dict[str, BuiltLog]) -> Iterator[str]:
    """Serve the logs of each folder by a broker; yields the value of the option `brokers`."""
    written(home, logs)
    addresses = []
    with ExitStack() as stack:
        for number in sorted({name.partition("/")[0] for name in logs}):
            ended_well(home / number)
            start = stack.enter_context(processes(home / number))
            broker = started(start, form, int(number))
            addresses.append(f"{number}:127.0.0.1:{broker.port}")
        yield ",".join(addresses)
