"""Golden transcripts: every operation and answer of a join, a crash, an expiry, an abandonment.

Rewrite them with `pytest --rewrite-golden` and review the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.transcripts import transcript
from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind

VARIANTS = ("documented", "kafka_07", "kafka_08", "hardened")

AT_US = 4_000_000
"""When it happens."""

CASES: dict[str, tuple[list[dict[str, Any]], float]] = {
    "join": ([{"at": "4s", "start": "group/1"}], 4),
    "crash": ([{"at": "4s", "crash": "group/1"}], 5),
    "expiry": ([{"at": "4s", "expire": "group/1"}], 4),
    "abandonment": ([{"at": "4s", "abandon": "group/1", "for": "1s"}], 5),
}
"""Name -> what happens, and for how many seconds the transcript listens."""


def scenario(case: str, layout: str) -> dict[str, Any]:
    """One broker, two partitions, two consumers."""
    timeline, _ = CASES[case]
    second = {"starts": "never"} if case == "join" else {"starts": "2s"}
    return {
        "name": f"one-{case}",
        "about": "a transcript",
        "clusters": {
            "main": {
                "layout": layout,
                "zookeeper": {"servers": 1},
                "brokers": 1,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": [{"id": "c0"}, {"id": "c1", **second}],
                "streams": {"clicks": 1},
                "config": {
                    "zookeeper.session.timeout.ms": 2000,
                    "auto.commit.interval.ms": 60_000,
                },
            }
        },
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}, *timeline],
        "settle": "8s",
    }


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES)
def test_transcript(case: str, variant: str, golden: Callable[[str, str], None]) -> None:
    """What is said and answered is what was reviewed."""
    layout = "0.8" if variant == "kafka_08" else "0.7"
    result = simulate(scenario(case, layout), seed=1, variant=variant)
    listens_us = int(CASES[case][1] * 1_000_000)
    text = transcript(result.trace, from_us=AT_US, to_us=AT_US + listens_us)
    assert EventKind.REBALANCE_COMPLETED in text, "the transcript has to reach a rebalance"
    golden(f"{case}-{variant}.txt", text)
