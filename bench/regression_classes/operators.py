"""An operator's hand on the registry of a group that goes on working.

Classes: `operators-<variant>`. An operator makes payloads unreadable for a while, and in a
hardened group deletes registrations and claims and sets offsets, too, at any moment or at a step
of a member, while members come and go. A hardened group comes back to what it is dealt, and none
of its members fails because it cannot read what another one has registered. The members of the
other variants fail their attempts, count them and try again as their variant says.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.mutation.accounts import differences
from bench.regression_classes.drawn_group import Drawn, drawn_group
from bench.regression_classes.members import shares_wrong
from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import Fields, ms, run

from watchkeeper import Result
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.trace.kinds import EventKind

STRANGER = "/consumers/billing/ids/stranger"
"""The registration of a consumer that does not run."""
STEPS = (
    *("fence", "read members", "read claims", "read offsets"),
    *("claim", "release", "commit", "await owner"),
)
UNREADABLE = ("", "many", "-1", "1.5", '{"clicks":-1}', '{"version":1', "[1]", '{"a":{"b":"c"}}')
"""Data that is nowhere what it should be."""
NO_CONSUMER = (
    *('{"clicks":"1"}', "*x*clicks", "*1!clicks", "*1*(", "!1!a{1,3}", "*1*[[:alpha:]]"),
    *('{"pattern":"grey_list","subscription":{"clicks":1},"version":1}',),
    *('{"pattern":"white_list","subscription":{"a":1,"b":1},"version":1}',),
    *('{"pattern":"white_list","subscription":{"(":1},"version":1}',),
    *('{"pattern":"static","subscription":{},"version":1}', '{"clicks":0}'),
)
"""Registrations that no member can use, or that want nothing."""
NO_BROKER = (
    *("here", "a:b:c:d", "a:1:123456", '{"host":1,"port":9092}', '{"host":"a","port":"1"}'),
    *('{"host":"a","port":1,"jmx_port":"x"}', '{"host":"a","port":1,"endpoints":3}'),
)
NO_TOPIC = (
    *('{"partitions":[]}', '{"partitions":{"a":[0]}}', '{"partitions":{"0":0}}'),
    *('{"partitions":{"0":["0"]}}', '{"version":1}', '{"partitions":{"-1":[0]}}'),
)
MAY_VIOLATE = frozenset({"truthful registry", "single ownership", "own nodes only"})
"""Who loses a claim by the hand of an operator fetches on until the notification arrives.

A release that is under way then deletes the claim of the next owner.
"""
JUDGED = frozenset(
    {"attempt", "gives up", "pause", "needless attempt", "registration", "claim", "stream"}
)
"""The accounts that an operator's hand does not change."""


def draw_operators(dice: Random, name: str) -> Outcome:
    """Draw a group of one variant, changes of its members, and writes of an operator."""
    drawn = drawn_group(dice, VARIANTS[name])
    if drawn.is_refused:
        drawn.strategy = "roundrobin_11"
    changes = [_change(dice, drawn, at) for at in (9_000, 17_000)]
    writes = [_write(dice, drawn) for _ in range(dice.randint(3, 8))]
    slow = {"at": "500ms", "delay": "billing/0", "by": ms(dice.randrange(5, 40)), "for": "30s"}
    fields: Fields = {
        "clusters": {
            "main": {
                "layout": drawn.layout,
                "zookeeper": {"servers": 1},
                "brokers": drawn.brokers,
                "topics": {topic: {drawn.each: count} for topic, count in drawn.topics.items()},
            }
        },
        "groups": {
            "billing": {
                "consumers": drawn.members,
                "apart": ms(dice.choice((0, 400, 1_500))),
                "config": {
                    "zookeeper.session.timeout.ms": 2_000,
                    "auto.commit.interval.ms": dice.choice((1_000, 60_000)),
                    "rebalance.max.retries": dice.choice((2, 3, 5)),
                    **drawn.strategy_setting,
                },
            }
        },
        "timeline": [
            *({"at": "0s", "produce": t, "rate": "50/s", "size": "100B"} for t in drawn.topics),
            *([slow] if dice.random() < 0.4 else []),
            *(entry for change in changes for entry in change),
            *writes,
        ],
        "settle": "20s",
    }
    result = run(dice, fields, name)
    real = sum(one.is_real for one in result.effects if one.action.is_fault)
    return Outcome(tuple(operators_wrong(result, drawn)), real)


def _change(dice: Random, drawn: Drawn, at_ms: int) -> list[Fields]:
    node = f"billing/{dice.randrange(len(drawn.members))}"
    verb = dice.choice(("leave", "crash"))
    back = "start" if verb == "leave" else "restart"
    return [{"at": ms(at_ms), verb: node}, {"at": ms(at_ms + 4_000), back: node}]


def _write(dice: Random, drawn: Drawn) -> Fields:
    """One write of an operator, at a moment or at a step of a member."""
    node = f"billing/{dice.randrange(len(drawn.members))}"
    topic = dice.choice(sorted(drawn.topics))
    place = f"{topic}/{dice.choice(drawn.partitions(topic))}"
    lasts = ms(dice.randrange(200, 4_000))
    stored = f"/brokers/topics/{topic}"
    if drawn.layout == "0.7":
        stored += f"/{dice.randrange(drawn.brokers)}"
    unreadable = (
        _unreadable(dice, STRANGER, NO_CONSUMER, lasts),
        _unreadable(dice, stored, NO_TOPIC, lasts),
        _unreadable(dice, f"/brokers/ids/{dice.randrange(drawn.brokers)}", NO_BROKER, lasts),
    )
    if not drawn.variant.fenced:
        return {"at": ms(dice.randrange(4_000, 24_000)), **dice.choice(unreadable)}
    entry = dice.choice(
        (
            {"unregister": node},
            {"unregister": node},
            {"disconnect": node, "for": ms(dice.randrange(10, 900))},
            {"delete_znode": f"/consumers/billing/owners/{place}"},
            {"delete_znode": f"/consumers/billing/owners/{place}"},
            {"write_znode": f"/consumers/billing/offsets/{place}", "data": "0"},
            *unreadable,
        )
    )
    if dice.random() < 0.6 and "for" not in entry:
        when = dice.choice(("before", "after_reply"))
        step = {"node": node, "purpose": dice.choice(STEPS), "nth": dice.randint(1, 4)}
        return {"on": {**step, "when": when}, **entry}
    return {"at": ms(dice.randrange(4_000, 24_000)), **entry}


def _unreadable(dice: Random, path: str, data: tuple[str, ...], lasts: str) -> Fields:
    return {"write_znode": path, "data": dice.choice((*UNREADABLE, *data)), "for": lasts}


# --- what is wrong ----------------------------------------------------------------------


def operators_wrong(result: Result, drawn: Drawn) -> Iterator[str]:
    """Violations, accounts that differ, failures without need, and shares at the end."""
    for account in differences(result.plan, result.trace):
        if account in JUDGED:
            yield f"members' accounts differ: {account}"
    for event in result.trace.of_kind(EventKind.TURN_FAILED):
        yield f"a turn of {event.node} fails: {event.detail['error']}"
    if not drawn.variant.fenced:
        return
    for violated in result.violated:
        if violated not in MAY_VIOLATE:
            yield f"{violated}: {result.judgement.finding(violated).evidence}"
    for event in result.trace.of_kind(EventKind.REBALANCE_FAILED):
        if STRANGER in event.detail["why"]:
            yield f"{event.node} fails because of a registration: {event.detail['why']}"
    yield from shares_wrong(result, drawn)


def _class_of(name: str) -> RegressionClass:
    return RegressionClass(
        f"operators-{name}",
        f"an operator's hand on the registry of {name}: its group goes on as the variant says",
        lambda dice: draw_operators(dice, name),
    )


OPERATORS = tuple(map(_class_of, ("hardened", "kafka_08", "kafka_07", "documented")))
