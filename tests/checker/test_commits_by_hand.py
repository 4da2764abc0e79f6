"""A member whose application commits by hand, in every interleaving: each order has a result."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.checker.clusters import rests_of, searched, violated
from watchkeeper.check.replay import replay_sim, walk
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.cluster.terminal import ANSWERED
from watchkeeper.checker.counterexample.explanation import counterexample_of, scheduled_step_of
from watchkeeper.checker.search import liveness
from watchkeeper.model.actor.events import Command, CommandKind, Notification
from watchkeeper.model.actor.orders import execute
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.group.consumer import ORDERS, GroupMember
from watchkeeper.model.group.state import Consumer, ConsumerState
from watchkeeper.model.plan.bounds import Bounds, of_timeline
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text, load

TEXT = """
name: by-hand
about: applications that commit by hand
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 1
    storage: {{}}
    topics: {{orders: {{partitions_per_broker: {partitions}}}}}
groups:
  billing:
    consumers: {consumers}
    streams: {{orders: 1}}
    guarantee: {{semantics: measured}}
    handling: {{commits: {commits}}}
    config: {{auto.commit.enable: false}}
timeline: []
"""
BREAKS: list[dict[str, int]] = [
    {},
    {"lost_reply": 1},
    {"lost_request": 1},
    {"late_request": 1},
    {"disconnect": 1},
    {"expire": 1},
    {"leave": 1},
]
some_break = pytest.mark.parametrize(
    "faults", BREAKS, ids=lambda faults: "-".join(faults) or "none"
)


def by_hand(
    variant: str = "hardened",
    *,
    consumers: int = 2,
    partitions: int = 2,
    commits: str = "after",
    program: Program | None = None,
) -> Plan:
    """A small cluster whose applications commit by hand."""
    text = TEXT.format(consumers=consumers, partitions=partitions, commits=commits)
    return from_text("by-hand.yaml", text).plan(variant, program=program)


class ForgetsFailedOrders(GroupMember):
    """An order whose work raises has no result."""

    async def take(
        self,
        me: Consumer,
        state: ConsumerState,
        requests: Requests,
        notification: Notification | None,
    ) -> ConsumerState:
        """Do the work first, and report only what comes of it."""
        if isinstance(notification, Command) and notification.kind is CommandKind.COMMIT:
            after = await ORDERS[CommandKind.COMMIT](me, state, requests)

            async def done() -> tuple[ConsumerState, bool]:
                return after

            return await execute(notification, done())
        return await super().take(me, state, requests, notification)


FORGETFUL = Program(ForgetsFailedOrders().turn, None, ConsumerState())


@some_break
def test_every_order_has_a_result(faults: dict[str, int]) -> None:
    """Whatever happens during a commit, its application goes on."""
    _, search, found = searched(by_hand(), faults, messages=1, begin="settled")

    assert found.is_complete
    assert violated(found) == []
    assert found.terminal_states
    assert liveness.judge(search).is_inevitable


@pytest.mark.parametrize("commits", ["before", "after"])
@pytest.mark.parametrize("fault", ["lost_reply", "lost_request", "disconnect", "expire"])
def test_an_order_without_a_result_is_found(fault: str, commits: str) -> None:
    """With one member and one message; and the counterexample is one in the simulation too."""
    plan = by_hand(consumers=1, partitions=1, commits=commits, program=FORGETFUL)
    bounds = Bounds({fault: 1}, messages=1, begin="settled")
    system, search, found = searched(
        plan, bounds.faults, messages=1, begin="settled", finds_all=False
    )

    assert violated(found) == [ANSWERED.name]
    shown = counterexample_of(system, search, found.violations[0])
    assert "the application of billing/0 waits for a result of its commit" in shown.proof
    replayed = replay_sim(plan, bounds, shown.schedule)
    assert replayed.reached, replayed.text
    honest = by_hand(consumers=1, partitions=1, commits=commits)
    _, _, honestly = searched(honest, bounds.faults, messages=1, begin="settled")
    assert violated(honestly) == []


@some_break
@pytest.mark.parametrize("variant", ["hardened", "documented"])
def test_reductions_pass_over_no_order(variant: str, faults: dict[str, int]) -> None:
    """With and without them the same is violated, and the same states are at rest."""
    plan = by_hand(variant, partitions=1)
    given: dict[str, Any] = {"messages": 2, "begin": "settled"}
    plain_system, plain, all_of_it = searched(plan, faults, reduces=False, **given)
    system, search, found = searched(plan, faults, **given)

    assert all_of_it.is_complete
    assert violated(found) == violated(all_of_it)
    assert rests_of(system, search) == rests_of(plain_system, plain)
    assert found.progress.states <= all_of_it.progress.states


@pytest.mark.parametrize("number", range(6))
def test_random_schedules_go_the_same_way_in_the_simulation(number: int) -> None:
    """Orders, their results, and the commits in between."""
    plan = by_hand()
    bounds = Bounds({"disconnect": 1, "expire": 1, "lost_reply": 1}, messages=2, begin="settled")
    system = ClusterSystem(plan, bounds)
    steps = tuple(scheduled_step_of(system, step) for step in walk(system, Random(number)))

    done = replay_sim(plan, bounds, Schedule("", steps))

    assert done.conforms, done.text
    assert any(step.operation.startswith("multi") for step in steps)


def test_a_scenario_that_commits_by_hand_is_searched_with_messages() -> None:
    """Without `bounds:` too: faults of a commit need a commit."""
    assert of_timeline(load("connection-loss-mid-commit").plan()).bounds.messages == 1
    assert of_timeline(load("connection-loss-mid-claim").plan()).bounds.messages == 0
