"""Groups without messages: new groups, and targets by role.

Classes: `new-groups`, `roles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import Fields, ms, run, violations

from watchkeeper import Result
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.roles import role_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

# --- new groups ----------------------------------------------------------------------------

TOPICS = ("clicks", "orders", "views", "searches")


def draw_new_groups(dice: Random) -> Outcome:
    """Draw new groups of either layout, without a fault."""
    layout = dice.choice(("0.7", "0.8"))
    each = "partitions" if layout == "0.8" else "partitions_per_broker"
    topics = dice.sample(TOPICS, dice.randint(1, len(TOPICS)))
    cluster = {
        "layout": layout,
        "zookeeper": {"servers": dice.choice((1, 3))},
        "brokers": dice.randint(1, 3),
        "topics": {name: {each: dice.randint(1, 4)} for name in topics},
    }
    groups: Fields = {}
    for name in ("billing", "audit")[: dice.randint(1, 2)]:
        wants: Fields = {"filter": {"white_list": ".*", "streams": dice.randint(1, 2)}}
        if dice.random() < 0.5:
            wants = {"streams": {topic: dice.randint(1, 2) for topic in topics}}
        groups[name] = {
            "consumers": dice.randint(1, 5),
            "starts": ms(dice.randrange(1_000, 2_000)),
            "apart": dice.choice(("0s", "1ms", "10ms", "300ms", "1s")),
            **wants,
        }
    fields: Fields = {
        "clusters": {"main": cluster},
        "groups": groups,
        "timeline": [],
        "settle": "8s",
    }
    result = run(dice, fields)
    wrong = [*violations(result), *new_groups_wrong(result.trace, set(groups))]
    return Outcome(tuple(wrong), len(groups))


OVERTAKEN = "quicker"
"""What an attempt says of a claim that another member of the group made meanwhile."""


def new_groups_wrong(trace: Trace, groups: set[str]) -> Iterator[str]:
    """Attempts that failed though nothing but the newness of the group stood in their way."""
    completed: set[str] = set()
    for event in trace.of_kind(EventKind.REBALANCE_FAILED, EventKind.REBALANCE_COMPLETED):
        if event.kind == EventKind.REBALANCE_COMPLETED:
            completed.add(event.group)
        elif OVERTAKEN not in event.detail["why"]:
            yield f"at {event.t_us} us {event.node} fails: {event.detail['why']}"
    for group in sorted(groups - completed):
        yield f"{group} never completes a rebalance"


# --- targets by role -------------------------------------------------------------------------

LEADER, FOLLOWER = "zookeeper/leader", "zookeeper/follower"


def _at_role(dice: Random, role: str) -> list[Fields]:
    """One action on a role, and sometimes the restart of what it struck."""
    at_ms = dice.randrange(2_500, 9_000)
    lasts = ms(dice.randrange(200, 4_000))
    verbs: list[Fields] = [
        {"crash": role},
        {"crash": role},
        {"pause": role, "for": lasts},
        {"partition": role, "for": lasts},
        {"partition": "billing/0", "from": role, "for": lasts},
        {"restart": role},
    ]
    if role == FOLLOWER:
        verbs.append({"lag": role, "by": ms(dice.randrange(50, 500)), "for": lasts})
    entry = dice.choice(verbs)
    timeline = [{"at": ms(at_ms), **entry}]
    if "crash" in entry:
        timeline.append({"at": ms(at_ms + dice.randrange(300, 4_000)), "restart": role})
    return timeline


def draw_roles(dice: Random) -> Outcome:
    """Draw an ensemble, and actions on its leader and its followers at any moment."""
    cluster = {
        "brokers": 1,
        "zookeeper": {"servers": dice.choice((3, 3, 5))},
        "topics": {"clicks": {"partitions_per_broker": 2}},
    }
    timeline: list[Fields] = [{"at": "0s", "produce": "clicks", "rate": "20/s"}]
    for _ in range(dice.randint(1, 4)):
        timeline += _at_role(dice, dice.choice((LEADER, FOLLOWER)))
    if dice.random() < 0.2:
        loss = {"quorum_loss": "zookeeper", "for": ms(dice.randrange(500, 3_000))}
        timeline.append({"at": ms(dice.randrange(2_500, 8_000)), **loss})
    fields: Fields = {
        "clusters": {"main": cluster},
        "groups": {"billing": {"consumers": 2, "streams": {"clicks": 1}}},
        "timeline": timeline,
        "settle": "10s",
    }
    result = run(dice, fields)
    return Outcome(tuple(roles_wrong(result)), sum(1 for _ in _of_roles(result)))


def _of_roles(result: Result) -> Iterator[FaultEffect]:
    for effect in result.effects:
        other = effect.action.option("from")
        if role_of(effect.action.target) or (isinstance(other, str) and role_of(other)):
            yield effect


def roles_wrong(result: Result) -> Iterator[str]:
    """Actions on roles that name no server, the wrong one, or no reason."""
    servers = {f"zookeeper/{at}" for at in range(1, 6)}
    struck = {
        event.detail["number"]: event
        for event in result.trace.of_kind(EventKind.FAULT, EventKind.CHANGE)
    }
    for effect in _of_roles(result):
        label = f"{effect.action.label} (entry {effect.action.number})"
        event = struck.get(effect.action.number)
        if event is None:
            yield f"{label} is not in the trace"
            continue
        other = event.detail.get("from")
        named = event.node if role_of(effect.action.target) else other
        if effect.missed or event.detail.get("missed"):
            if event.detail.get("missed") != effect.missed or len(effect.missed) < 10:
                yield f"{label} has no reason: {effect.missed!r}, {dict(event.detail)}"
            continue
        if named not in servers:
            yield f"{label} names {named}, which is no server"
        is_leader = LEADER in (effect.action.target, effect.action.option("from"))
        if is_leader and effect.action.verb.name != "restart":
            leader = _leader_at(result.trace, event.seq)
            if named != leader:
                yield f"{label} names {named}; {leader} led at {event.t_us} us"


def _leader_at(trace: Trace, seq: int) -> str:
    leader = ""
    for event in trace.of_kind(EventKind.LEADER_ELECTED, EventKind.LEADER_LOST):
        if event.seq < seq:
            leader = event.node if event.kind == EventKind.LEADER_ELECTED else ""
    return leader


NEW_GROUPS = RegressionClass(
    "new-groups",
    "new groups without faults: no attempt fails because a znode does not exist yet",
    draw_new_groups,
)
ROLES = RegressionClass(
    "roles",
    "actions on the leader or a follower: the trace names the server, or why there is none",
    draw_roles,
)
