"""An operator's writes in a live run: the same changes as simulated, and of no session."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import NotEmptyError
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler

from tests.real.world.test_runs import scenario
from tests.support.live_zookeeper import lived_to_a_verdict
from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.world.capabilities import lacking
from watchkeeper.real.world.operator import Operator

BY_HAND: tuple[dict[str, Any], ...] = (
    {"at": "3s", "unregister": "group/0"},
    {"at": "4s", "write_znode": "/brokers/topics/clicks/1", "data": "many", "for": "1s"},
    {"at": "6s", "write_znode": "/consumers/group/ids/stranger", "data": "{}", "for": "1s"},
    {"at": "8s", "delete_znode": "/consumers/group/ids"},
)


def written(result: Result) -> list[tuple[object, ...]]:
    """The operator's changes, without the sessions of ephemerals, which differ."""
    return [
        (did[0], did[1], *did[3:])
        for event in result.trace.of_kind(EventKind.APPLIED)
        if event.detail["by"] == "operator"
        for did in event.detail["did"]
    ]


def has_written(result: Result) -> bool:
    """Whether all but the last write had an effect; that one never has, so nothing is judged."""
    return all(effect.is_real for effect in result.effects[:-1])


def test_writes_are_those_of_the_simulation() -> None:
    """Each changes the registry, is written back, and is of no session; members go on."""
    fields = scenario(*BY_HAND)

    live, simulated = lived_to_a_verdict(fields, is_enough=has_written), simulate(fields)

    clicks, stranger = "/brokers/topics/clicks/1", "/consumers/group/ids/stranger"
    assert (
        written(live)
        == written(simulated)
        == [
            ("deleted", "/consumers/group/ids/group_c0"),
            ("changed", clicks, "many"),
            ("changed", clicks, "2"),
            ("created", stranger, "{}"),
            ("deleted", stranger),
        ]
    )
    for result in (live, simulated):
        by_hand = [event for event in result.trace if event.detail.get("by") == "operator"]
        assert {event.session for event in by_hand} == {0}
        assert not result.effects[-1].is_real
        assert result.effects[-1].missed.startswith("/consumers/group/ids: ")
        violated = [one.claim.name for one in result.findings if one.verdict is Verdict.VIOLATED]
        assert not violated, result


def test_an_external_zookeeper_is_not_written_by_hand() -> None:
    """It does not say who has written, so the trace could not."""
    plan = scenario_of(scenario(*BY_HAND)).plan()
    assert not list(lacking(plan))
    refused = list(lacking(plan, None))
    assert len(refused) == len(BY_HAND)
    assert all("does not say who has written" in one for one in refused)


class Client:
    """A client whose requests come to one result, or to none."""

    client_id = (7, b"")

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def _answer(self, *arguments: Any) -> AsyncResult:
        answer = SequentialThreadingHandler().async_result()
        if self.error is not None:
            answer.set_exception(self.error)
        return answer

    get_async = set_async = create_async = delete_async = get_children_async = _answer


@pytest.mark.parametrize(
    ("error", "problem"),
    [(None, "/a: KazooTimeoutError"), (NotEmptyError(), "/a: NotEmptyError")],
)
def test_what_prevents_a_write_is_said(
    error: Exception | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal, or no answer in time; the run goes on."""
    monkeypatch.setattr("watchkeeper.real.world.operator.TIMEOUT_S", 0.01)
    client: Any = Client(error)
    operator = Operator(client, "/root")
    problems: list[str] = []

    operator.operate(Delete("/a"), problems.append)
    operator.operate(SetData("/a", b""), problems.append)

    assert problems == [problem, problem]
    assert operator.sessions == {7}
    assert operator.undo_of("/a") == Delete("/a")
    assert list(operator.registrations_of(7, "group")) == []
