"""What a crash repeats: by the size of a fetch, and by the time between two commits."""

from __future__ import annotations

from functools import cache
from typing import Any

from watchkeeper.api.simulate import simulate
from watchkeeper.experiment.apparatus.rows import Outcome, Row
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.message_ranges import Numbered
from watchkeeper.sim.disk.host_costs import MachineProfile

SEEDS = 3
RATE = 2_000
FETCHES = (4 << 10, 64 << 10, 1 << 20)
COMMIT_S = 2
"""Between two commits, where fetches differ."""
COMMITS_S = (1, 4, 8)
"""Between two commits, where fetches are of the usual size."""


def repeating(machine: MachineProfile) -> Outcome:
    """Kill a member of a group of two while messages come."""
    del machine  # what is repeated does not depend on its speed
    fetches = {size: repeated(size, COMMIT_S) for size in FETCHES}
    commits = {every_s: repeated(FETCHES[-1], every_s) for every_s in COMMITS_S}
    return Outcome(
        (
            *(_row(size, COMMIT_S, many) for size, many in fetches.items()),
            *(_row(FETCHES[-1], every_s, many) for every_s, many in commits.items()),
        ),
        (
            f"Messages a crash, of {RATE:,} a second, the mean of {SEEDS} runs. Repeated is what "
            "was handed on and not committed. A member that keeps up has small fetches whatever "
            "their limit is, so the limit changes little; commit more often instead.",
        ),
    )


def _row(fetch_bytes: int, commit_s: int, many: float) -> Row:
    return Row(
        f"fetches of {fetch_bytes >> 10} KiB, a commit every {commit_s} s", many, "messages"
    )


@cache
def repeated(fetch_bytes: int, commit_s: int) -> float:
    """Return the mean number of messages that are handed on again after a crash."""
    runs = [simulate(_scenario(fetch_bytes, commit_s), seed=seed) for seed in range(SEEDS)]
    return sum(_handed_on_again(run.trace) for run in runs) / SEEDS


def _handed_on_again(trace: Trace) -> int:
    """Count the messages that were consumed when they had been consumed before."""
    known: Numbered[bool] = Numbered()
    again = 0
    for event in trace.of_kind(EventKind.CONSUMED):
        for row in event.detail["ranges"]:
            messages = MessageRange(*row)
            place = messages.producer, messages.first, messages.end
            again += messages.size - sum(end - first for first, end in known.unknown(*place))
            known.add(*place, True)
    return again


def _scenario(fetch_bytes: int, commit_s: int) -> dict[str, Any]:
    storage = {"machine": "modern", "config": {"log.flush.interval": 200}}
    topics = {"clicks": {"partitions_per_broker": 2}}
    config = {"fetch.size": fetch_bytes, "autocommit.interval.ms": 1000 * commit_s}
    return {
        "name": "repeats",
        "about": "A member of a group dies while messages come.",
        "clusters": {
            "main": {"layout": "0.7", "brokers": 2, "storage": storage, "topics": topics}
        },
        "producers": {"web": {}},
        "groups": {
            "readers": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "guarantee": "measured",
                "config": config,
            }
        },
        "timeline": [
            {
                "at": "3s",
                "produce": "clicks",
                "rate": f"{RATE}/s",
                "size": "100B",
                "from": "web",
                "for": "20s",
            },
            {"at": "15700ms", "crash": "readers/1"},
        ],
        "settle": "12s",
    }
