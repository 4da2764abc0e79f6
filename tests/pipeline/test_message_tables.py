"""Judges of messages and tables say the same of any trace, and a mistake is seen."""

from __future__ import annotations

from bisect import insort
from typing import Any

import pytest

from tests.support.messages.random_traces import (
    OF_MESSAGES,
    Computed,
    computed_of,
    drawn_traces,
    judged,
)
from watchkeeper.model.delivery.ledger import Ledger
from watchkeeper.model.properties.delivery import DeliveryJudge
from watchkeeper.model.properties.starvation import PunctualityJudge, StarvationJudge
from watchkeeper.model.trace.trace import Event
from watchkeeper.pipeline.analysis.engine.engine import Engine

DRAWN = drawn_traces("producer-crash", "mirror-moved-group", number=60)


def no_message_is_new(*arguments: Any) -> int:
    """Where a repeat is taken for a message that comes for the first time."""
    return int(arguments[-1].first)


def nothing_happens(*arguments: Any) -> None:
    """Where an event is overlooked."""


def waits_though_it_is_stored(judge: PunctualityJudge, event: Event) -> None:
    """Where what is stored has to be stored again."""
    detail = event.detail
    if detail["outcome"] == "accepted":
        waiting = judge._waiting.setdefault((event.topic, detail["producer"]), [])
        insort(waiting, (detail["first"], detail["end"], event.t_us))


MISTAKES = (
    ("order", Ledger, "first_new", no_message_is_new),
    ("sane commits", DeliveryJudge, "_reset", nothing_happens),
    ("sane commits", DeliveryJudge, "_opened", nothing_happens),
    ("no starvation", StarvationJudge, "_opened", nothing_happens),
    ("no starvation", StarvationJudge, "_hosting", nothing_happens),
    ("punctual sending", PunctualityJudge, "_sent", waits_though_it_is_stored),
)
"""The property that each violates, and what is done in another way."""


@pytest.fixture(scope="module")
def computed(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """What tables say of drawn traces."""
    return computed_of(engine, DRAWN, tmp_path_factory.mktemp("drawn"))


def test_judges_and_tables_say_the_same_of_any_trace(computed: Computed) -> None:
    """The verdict, and the moment from which on it is violated; each comes out each way."""
    recorded = {
        (name, claim): found for name in DRAWN for claim, found in judged(DRAWN[name]).items()
    }

    assert {key: value for key, value in recorded.items() if computed.found[key] != value} == {}
    assert {(claim, verdict) for (_, claim), (verdict, _) in recorded.items()} == {
        (claim, verdict) for claim in OF_MESSAGES for verdict in ("holds", "violated", "unknown")
    }


@pytest.mark.parametrize(("violates", "what", "name", "mistake"), MISTAKES)
def test_a_mistake_of_a_judge_is_a_difference(
    computed: Computed,
    monkeypatch: pytest.MonkeyPatch,
    violates: str,
    what: type,
    name: str,
    mistake: Any,
) -> None:
    """Of the property that it judges, and of no other."""
    monkeypatch.setattr(what, name, mistake)
    differing = {
        claim
        for drawn in DRAWN
        for claim, found in judged(DRAWN[drawn]).items()
        if computed.found[drawn, claim] != found
    }

    assert differing == {violates}


def test_a_mistake_of_the_tables_is_a_difference(computed: Computed) -> None:
    """Here topics that mirrors bring are taken for any other."""
    judgements = {name: judged(DRAWN[name])["order"] for name in DRAWN}

    assert computed.mistaken != {}
    assert any(judgements[name] != found for name, found in computed.mistaken.items())
