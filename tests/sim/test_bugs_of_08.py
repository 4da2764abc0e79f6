"""Bugs that 0.8.2.2 has: each shows in `kafka_08`, and `hardened` holds."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from bench.control_plane_bugs.bugs_of_08 import (
    ALWAYS_A_LITTLE_BEHIND,
    BUGS_OF_08,
    DEPOSED_AND_ELECTED_AGAIN,
    LATER_BUGS,
    ONE_LARGE_BATCH,
    STATE_GOES_FIRST,
    BugOf08,
    LaterBug,
)
from bench.control_plane_bugs.mutant import Scenario

from watchkeeper import simulate
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08, REPLICATIONS


@pytest.mark.parametrize("bug", BUGS_OF_08, ids=lambda bug: bug.name)
def test_a_bug_of_08_shows(bug: BugOf08) -> None:
    result = simulate(bug.scenario, variant="kafka_08", seed=1)
    assert bug.violated in result.judgement.violated()


@pytest.mark.parametrize("bug", BUGS_OF_08, ids=lambda bug: bug.name)
def test_hardened_does_not_have_it(bug: BugOf08) -> None:
    assert simulate(bug.scenario, variant="hardened", seed=1).holds


@pytest.mark.parametrize(
    ("answers", "scenario", "violated"),
    [
        (("slow_follower", "awaited"), ONE_LARGE_BATCH, "committed never changes"),
        (("waiting_producers",), DEPOSED_AND_ELECTED_AGAIN, "confirmed is kept"),
        (("awaited",), ALWAYS_A_LITTLE_BEHIND, "committed never changes"),
    ],
)
def test_it_is_these_answers(answers: tuple[str, ...], scenario: Scenario, violated: str) -> None:
    """`hardened` with the answers of 0.8.2.2 has the bug."""
    weaker = replace(HARDENED, **{name: getattr(KAFKA_08, name) for name in answers})
    with patch.dict(REPLICATIONS, {"hardened": weaker}):
        result = simulate(scenario, variant="hardened", seed=1)
    assert violated in result.judgement.violated()


def test_a_topic_goes_whose_state_has_gone_first() -> None:
    """KAFKA-2937. The judges of logs do not follow what an operator deletes."""
    shipped, hardened = (
        simulate(STATE_GOES_FIRST, variant=variant, seed=1).judgement.violated()
        for variant in ("kafka_08", "hardened")
    )
    assert "requests are carried out" in shipped
    assert "requests are carried out" not in hardened


@pytest.mark.parametrize("bug", LATER_BUGS, ids=lambda bug: bug.name)
def test_08_does_not_have_a_later_bug(bug: LaterBug) -> None:
    assert simulate(bug.scenario, variant="kafka_08", seed=1).holds
