"""Applications that commit by hand, and producers: no order is left without an answer.

Classes: `commits`, `producers`.
"""

from __future__ import annotations

from random import Random

from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import (
    Fields,
    ms,
    of_node,
    ranges,
    run,
    stored_cluster,
    violations,
)

from watchkeeper import Result
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

HAND = {"after": "at least once", "before": "at most once", "with the result": "exactly once"}
"""When an application commits -> what that guarantees."""

# --- commits by hand -------------------------------------------------------------------


def _commit_fault(dice: Random, members: int) -> Fields:
    """A fault at a commit of a member, or at a moment."""
    member = f"billing/{dice.randrange(members)}"
    faults: list[Fields] = [
        {"lose": "reply"},
        {"lose": "request"},
        {"lose": "request", "lands_after": ms(dice.randrange(10, 3_000))},
        {"expire": member},
        {"expire": member, "unknown": ms(dice.randrange(10, 1_500))},
        {"disconnect": member, "for": ms(dice.randrange(10, 1_500))},
        {"pause": member, "for": ms(dice.randrange(100, 6_000))},
    ]
    fault = dice.choice(faults)
    if "lose" in fault or dice.random() < 0.5:
        step = {"node": member, "purpose": "commit", "nth": dice.randrange(1, 60)}
        return {"on": {**step, "when": dice.choice(("before", "after_reply"))}, **fault}
    return {"at": ms(dice.randrange(3_000, 9_000)), **fault}


def _is_possible(entry: Fields) -> bool:
    return not ("lose" in entry and entry["on"]["when"] == "after_reply")


def draw_commits(dice: Random) -> Outcome:
    """Draw a group that commits by hand, and faults during its commits."""
    commits, members = dice.choice(tuple(HAND)), dice.randint(1, 3)
    faults = [_commit_fault(dice, members) for _ in range(dice.randint(1, 3))]
    faults = [one for one in faults if _is_possible(one)]
    leaves = [f"billing/{at}" for at in range(members) if at and dice.random() < 0.3]
    timeline = [
        {"at": "2s", "produce": "orders", "rate": "60/s", "size": "200B", "for": "8s"},
        *faults,
        *({"at": ms(dice.randrange(9_100, 10_500)), "leave": one} for one in leaves),
    ]
    cluster = stored_cluster(
        1,
        dice.randint(1, 3),
        {"log.flush.interval": dice.choice((1, 20, 50))},
        topic="orders",
        servers=dice.choice((1, 3)),
    )
    group = {
        "consumers": members,
        "streams": {"orders": dice.randint(1, 2)},
        "guarantee": HAND[commits],
        "handling": {"each": ms(dice.randint(1, 5)), "commits": commits},
        "config": {
            "auto.commit.enable": False,
            "refresh.leader.backoff.ms": 100,
            "auto.offset.reset": "largest" if commits == "before" else "smallest",
            "zookeeper.session.timeout.ms": dice.choice((2_000, 4_000)),
        },
    }
    fields: Fields = {
        "clusters": cluster,
        "groups": {"billing": group},
        "timeline": timeline,
        "settle": "14s",
    }
    result = run(dice, fields)
    return Outcome(commits_wrong(result), _struck(result))


def _struck(result: Result) -> int:
    return sum(one.is_real and one.action.is_fault for one in result.effects)


def _is_of_zombie(result: Result, violation: str) -> bool:
    """Whether a paused process hands on what it has fetched before it learns of its expiry.

    No client can prevent that.
    """
    paused = [one.action.target for one in result.effects if one.action.verb.name == "pause"]
    return violation.startswith("order:") and any(
        f" {name} was handed" in violation for name in paused
    )


def commits_wrong(result: Result) -> tuple[str, ...]:
    """What is wrong: a violation, a member that waits for ever, or one that does not leave."""
    wrong = [one for one in violations(result) if not _is_of_zombie(result, one)]
    handed: dict[str, int] = {}
    for event in result.trace.of_kind(EventKind.CONSUMED):
        partition = event.partition or event.detail["partition"]
        handed[partition] = max(handed.get(partition, 0), *(one[4] for one in ranges(event)))
    for event in result.trace.of_kind(EventKind.STORED):
        end = ranges(event)[-1][4]
        if end > handed.get(event.partition, 0):
            wrong.append(f"{event.place} was read to {handed.get(event.partition, 0)} of {end}")
    for effect in result.effects:
        is_order = effect.action.verb.name == "leave" and effect.is_real
        if is_order and not of_node(result.trace, EventKind.ENDED, effect.action.target):
            wrong.append(f"{effect.action.target} never leaves")
    return tuple(wrong)


# --- the order of what a producer sends --------------------------------------------------

KEEPING = ("documented", "documented_ceil", "hardened")
"""Variants of the 0.7 layout whose producers keep the order of their messages."""


def draw_producers(dice: Random) -> Outcome:
    """Draw an asynchronous producer whose brokers die and come back."""
    return producers_of(dice, dice.choice(KEEPING))


def producers_of(dice: Random, variant: str) -> Outcome:
    """Draw an asynchronous producer of a variant."""
    brokers = dice.randint(1, 3)
    config = {
        "producer.type": "async",
        "queue.time": dice.choice((50, 200, 500)),
        "batch.size": dice.choice((10, 50, 200)),
        "queue.size": 20_000,
        "reconnect.interval": dice.choice((100, 200, 2_000)),
        "compression.codec": dice.choice((0, 0, 1, 2)),
    }
    timeline: list[Fields] = [
        {"at": "2s", "produce": "clicks", "rate": f"{dice.choice((500, 1000, 2000))}/s",
         "size": "500B", "for": "5s"}
    ]  # fmt: skip
    for broker in dice.sample(range(brokers), dice.randint(1, brokers)):
        struck = dice.randrange(2_500, 6_000)
        verb = dice.choice(("crash", "crash_host", "leave", "disconnect", "pause"))
        if verb in ("disconnect", "pause"):
            lasts = {"for": ms(dice.randrange(50, 1_500))}
            timeline.append({"at": ms(struck), verb: f"broker/{broker}", **lasts})
            continue
        returns = struck + dice.randrange(500, 3_000)
        timeline.append({"at": ms(struck), verb: f"broker/{broker}"})
        timeline.append({"at": ms(returns), "start": f"broker/{broker}"})
    fields: Fields = {
        "clusters": stored_cluster(
            brokers, dice.randint(1, 2), {"log.flush.interval": dice.choice((20, 500))}
        ),
        "producers": {"web": {"config": config}},
        "timeline": timeline,
        "settle": "6s",
    }
    result = run(dice, fields, variant)
    return Outcome(tuple(out_of_order(result.trace)), _struck_any(result))


def _struck_any(result: Result) -> int:
    return sum(one.is_real for one in result.effects) - 1


def out_of_order(trace: Trace) -> list[str]:
    """Messages that are stored for the first time after later ones of the same sender."""
    ends: dict[tuple[str, str], int] = {}
    seen: dict[tuple[str, str], set[int]] = {}
    wrong = []
    for event in trace.of_kind(EventKind.STORED):
        for producer, first, end, *_ in ranges(event):
            key = (producer, event.place)
            known = seen.setdefault(key, set())
            late = [one for one in range(first, end) if one not in known]
            if late and late[0] < ends.get(key, 0):
                wrong.append(
                    f"at {event.t_us} us message {late[0]} of {producer} is stored in "
                    f"{event.place} after message {ends[key] - 1}"
                )
            known.update(late)
            ends[key] = max(ends.get(key, 0), end)
    return wrong


COMMITS = RegressionClass(
    "commits",
    "commits by hand under losses, expiries and pauses: each order is answered",
    draw_commits,
)
PRODUCERS = RegressionClass(
    "producers",
    "asynchronous producers through the death and return of brokers: the order is kept",
    draw_producers,
)
