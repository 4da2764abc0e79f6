"""The sentence that says what happened in a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from watchkeeper import simulate
from watchkeeper.api.synopsis import synopsis
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.why.fault_words import WORDS
from watchkeeper.scenarios import shipped

SENTENCES = [
    (
        "consumer-crash",
        "hardened",
        "billing/1 was killed at 14.000 s; its 2 partitions were unread for 2.01 s, until its "
        "session had expired.",
    ),
    ("gc-pause-zombie", "kafka_08", "billing/1 stood still at 14.000 s for 6.00 s."),
    ("steady-join", "hardened", ""),
    ("zookeeper-quorum-loss", "hardened", "zookeeper lost its majority at 12.000 s for 10.00 s."),
    (
        "rolling-restart",
        "hardened",
        "left at 9.000 s; its 2 partitions were without a leader for",
    ),
    ("leader-and-successor-crash", "hardened", "(the timeline has 1 more)."),
]


@pytest.mark.parametrize(("name", "variant", "sentence"), SENTENCES)
def test_the_sentence(name: str, variant: str, sentence: str) -> None:
    """Of a fault with a consequence, of one without, and of a run without faults."""
    found = synopsis(simulate(name, variant=variant).trace)
    assert sentence in found
    assert bool(sentence) is bool(found)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_has_a_sentence_or_none(name: str) -> None:
    """One line, which names a process that was struck."""
    trace = simulate(name).trace
    found = synopsis(trace)
    struck = {
        event.node
        for event in trace.of_kind(EventKind.FAULT, EventKind.CHANGE)
        if event.detail.get("verb") in WORDS
    }
    assert bool(found) is bool(struck)
    if found:
        assert found.endswith(".")
        assert "\n" not in found
        assert any(found.startswith(f"{node} ") for node in struck)


def test_the_words_are_of_verbs() -> None:
    """A verb that is renamed would have none."""
    assert set(WORDS) <= set(VERBS)


def test_a_partition_that_stays_unread_is_no_pause() -> None:
    """Nothing took over, so how long it takes is unknown."""
    trace = simulate("consumer-crash").trace
    crash = next(trace.of_kind(EventKind.FAULT).__iter__())
    rows = [row for row in trace.rows if row[0] <= crash.t_us]
    assert synopsis(Trace(replace(trace.header), rows)) == "billing/1 was killed at 14.000 s."
