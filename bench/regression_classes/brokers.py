"""Brokers that store messages: they leave, move and bounce; their topics are deleted.

Classes: `bounces`, `topics`, `leaders`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import (
    Fields,
    changes,
    ms,
    of_node,
    ranges,
    run,
    stored_cluster,
    violations,
)

from watchkeeper import Result
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

S = 1_000_000

# --- brokers that come and go ------------------------------------------------------------

CALM_MS = 7_000
"""When every broker of the class `bounces` runs again."""


def _bounce(dice: Random, broker: str, at_ms: int) -> list[Fields]:
    """One way to bounce a broker, over before `CALM_MS`."""
    struck, returns = ms(at_ms), ms(at_ms + dice.randrange(200, 2_500))
    verb = dice.choice(
        ("leave", "leave", "move", "move", "crash", "crash_host", "expire", "pause")
    )
    if verb == "move":
        return [{"at": struck, "move": broker, "to": f"h{dice.randrange(10, 99)}"}]
    if verb == "expire":
        return [{"at": struck, "expire": broker}]
    if verb == "pause":
        return [{"at": struck, "pause": broker, "for": ms(dice.randrange(50, 1_500))}]
    return [{"at": struck, verb: broker}, {"at": returns, "start": broker}]


def draw_bounces(dice: Random) -> Outcome:
    """Draw brokers under load that leave, move and die at any moment."""
    brokers = dice.randint(1, 3)
    bounced = dice.sample(range(brokers), dice.randint(1, brokers))
    busy = {
        "rate": f"{dice.choice((1_000, 5_000, 20_000))}/s",
        "size": dice.choice(("100B", "1kB")),
        "for": ms(dice.randrange(1_500, 4_000)),
    }
    fields: Fields = {
        "clusters": stored_cluster(
            brokers,
            dice.randint(1, 3),
            {
                "log.flush.interval": dice.choice((1, 50, 500)),
                "log.default.flush.scheduler.interval.ms": dice.choice((20, 50, 1_000)),
            },
        ),
        "timeline": [
            {"at": "1s", "produce": "clicks", **busy},
            *(
                entry
                for broker in bounced
                for entry in _bounce(dice, f"broker/{broker}", dice.randrange(1_200, 4_400))
            ),
            {"at": ms(CALM_MS + 6_000), "produce": "clicks", "rate": "6000/s", "size": "100B",
             "for": "2s"},
        ],
        "settle": "3s",
    }  # fmt: skip
    if dice.random() < 0.4:
        fields["groups"] = {"billing": {"consumers": 1, "streams": {"clicks": 1}}}
    result = run(dice, fields)
    bounces = sum(one.is_real for one in result.effects) - 2
    return Outcome(tuple(bounces_wrong(result, brokers)), bounces)


def bounces_wrong(result: Result, brokers: int) -> Iterator[str]:
    """What is wrong: a violation, a broker that serves no more, a log that was not closed."""
    yield from violations(result)
    for number in range(brokers):
        broker = f"broker/{number}"
        after = [
            event
            for event in of_node(result.trace, EventKind.STORED, broker)
            if event.t_us > (CALM_MS + 6_000) * 1_000
        ]
        if not after:
            yield f"{broker} stores nothing after its return"
    for effect in result.effects:
        if effect.action.verb.name in ("leave", "move") and effect.is_real:
            yield from _not_closed(result.trace, effect.action.target, effect.at_us or 0)


def _not_closed(trace: Trace, broker: str, left_us: int) -> Iterator[str]:
    """The logs that a broker which left in good order had to recover."""
    for event in of_node(trace, EventKind.LOG_OPENED, broker):
        if event.t_us > left_us and not event.detail["clean"]:
            yield f"{broker} left at {left_us} us, and recovers {event.place} at {event.t_us} us"


# --- topics that are deleted and created again -------------------------------------------

AGAIN_MS = 12_000
"""When messages are sent to the topic that was created again."""


def draw_topics(dice: Random) -> Outcome:
    """Draw a topic that is deleted at any moment and created again, in either layout."""
    return _draw_stored_topic(dice) if dice.random() < 0.8 else _draw_counted_topic(dice)


def _draw_stored_topic(dice: Random) -> Outcome:
    brokers, partitions = dice.randint(1, 2), dice.randint(1, 2)
    created_ms = dice.randrange(7_500, 9_000)
    deleted_ms = dice.randrange(2_500, 7_000)
    timeline: list[Fields] = [
        {"at": "2s", "produce": "clicks", "rate": f"{dice.choice((200, 2_000))}/s",
         "size": "200B", "for": ms(dice.randrange(500, 3_000))},
        {"at": ms(deleted_ms), "delete_topic": "clicks"},
        {"at": ms(created_ms), "create_topic": "clicks", "partitions_per_broker": partitions},
        {"at": ms(AGAIN_MS), "produce": "clicks", "rate": "300/s", "size": "200B", "for": "2s"},
    ]  # fmt: skip
    if dice.random() < 0.5:
        left_ms = dice.randrange(2_200, deleted_ms)
        starts_ms = dice.randrange(deleted_ms + 200, 10_000)
        verb = dice.choice(("leave", "crash", "crash_host"))
        timeline.append({"at": ms(left_ms), verb: "broker/0"})
        timeline.append({"at": ms(starts_ms), "start": "broker/0"})
    group = {
        "consumers": dice.randint(1, 2),
        "filter": {"white_list": "(clicks|views)", "streams": 1},
        "config": {
            "auto.commit.interval.ms": dice.choice((300, 2_000)),
            "auto.offset.reset": dice.choice(("smallest", "largest")),
            "refresh.leader.backoff.ms": 100,
        },
    }
    config = {"log.flush.interval": dice.choice((1, 20, 200))}
    fields: Fields = {
        "clusters": stored_cluster(brokers, partitions, config),
        "groups": {"billing": group},
        "timeline": timeline,
        "settle": "8s",
    }
    result = run(dice, fields)
    wrong = [*violations(result), *topics_wrong(result.trace, brokers, deleted_ms * 1_000)]
    return Outcome(tuple(wrong), sum(one.is_real for one in result.effects))


def topics_wrong(trace: Trace, brokers: int, deleted_us: int) -> Iterator[str]:
    """What is wrong with a topic that was deleted and created again."""
    old = {
        (producer, number)
        for event in trace.of_kind(EventKind.STORED)
        if event.t_us < deleted_us
        for producer, first, end, *_ in ranges(event)
        for number in range(first, end)
    }
    yield from _wrong_offsets(trace, deleted_us)
    for event in trace.of_kind(EventKind.CONSUMED):
        if event.t_us > AGAIN_MS * 1_000:
            for producer, first, end, *_ in ranges(event):
                if any((producer, number) in old for number in range(first, end)):
                    yield f"at {event.t_us} us {event.node} is handed a deleted message"
    for broker in range(brokers):
        path = f"/brokers/topics/clicks/{broker}"
        kept = [change[0] for event, change in changes(trace) if change[1] == path]
        if kept[-1:] in ([], ["deleted"]):
            yield f"{path} is not registered again"


def _wrong_offsets(trace: Trace, deleted_us: int) -> Iterator[str]:
    """Logs whose offsets do not begin at 0 after the deletion of their topic."""
    begun: dict[tuple[str, str], int] = {}
    for event in trace.of_kind(EventKind.LOG_OPENED, EventKind.STORED):
        if event.t_us < deleted_us:
            continue
        key = (event.node, event.partition)
        is_end = event.kind == EventKind.LOG_OPENED
        end = event.detail["end"] if is_end else ranges(event)[0][3]
        if event.t_us > AGAIN_MS * 1_000 and key not in begun and end:
            yield f"{event.place} of {event.node} begins at {end}"
        if not end or event.t_us > AGAIN_MS * 1_000:
            begun[key] = 0


def _draw_counted_topic(dice: Random) -> Outcome:
    """A topic whose log is a rate: it is registered again, and the group fetches it."""
    layout = dice.choice(("0.7", "0.8"))
    size: Fields = (
        {"partitions": dice.randint(1, 4)}
        if layout == "0.8"
        else {"partitions_per_broker": dice.randint(1, 2)}
    )
    created_ms = dice.randrange(7_000, 9_000)
    cluster = {
        "layout": layout,
        "zookeeper": {"servers": dice.choice((1, 3))},
        "brokers": dice.randint(1, 3),
        "topics": {"clicks": size},
    }
    fields: Fields = {
        "clusters": {"main": cluster},
        "groups": {"billing": {"consumers": 2, "filter": {"white_list": "clicks"}}},
        "timeline": [
            {"at": "0s", "produce": "clicks", "rate": "100/s"},
            {"at": ms(dice.randrange(2_500, 6_500)), "delete_topic": "clicks"},
            {"at": ms(created_ms), "create_topic": "clicks", **size},
        ],
        "settle": "8s",
    }
    result = run(dice, fields)
    wrong = violations(result)
    if not any(
        event.t_us > created_ms * 1_000 for event, change in changes(result.trace)
        if change[0] == "created" and change[1].startswith("/brokers/topics/clicks")
    ):  # fmt: skip
        wrong.append("the topic is not registered again")
    return Outcome(tuple(wrong), sum(one.is_real for one in result.effects))


# --- the state of a partition (0.8) -------------------------------------------------------

BROKER_IDS = "/brokers/ids/"
LATE_US = 3 * S
"""An administrator may write what it read so long ago."""


def draw_leaders(dice: Random) -> Outcome:
    """Draw brokers of the 0.8 layout that die, return, and hand over partitions."""
    brokers = dice.randint(2, 4)
    cluster = {
        "zookeeper": {"servers": dice.choice((1, 1, 3))},
        "layout": "0.8",
        "brokers": brokers,
        "session_timeout": dice.choice(("1s", "2s")),
        "topics": {
            "clicks": {
                "partitions": dice.randint(1, 3),
                "replicas": dice.randint(1, brokers),
            }
        },
    }
    timeline: list[Fields] = []
    at_ms = 3_000
    for broker in dice.sample(range(brokers), dice.randint(1, brokers)):
        at_ms += dice.randrange(50, 3_000)
        verb = dice.choice(("crash", "leave", "crash_host", "expire"))
        timeline.append({"at": ms(at_ms), verb: f"broker/{broker}"})
        if verb != "expire" and dice.random() < 0.8:
            returns = at_ms + dice.randrange(500, 5_000)
            timeline.append({"at": ms(returns), "start": f"broker/{broker}"})
    if dice.random() < 0.3:
        move = {"move_leader": "clicks/0", "to": f"broker/{dice.randrange(brokers)}"}
        timeline.append({"at": ms(dice.randrange(3_000, 9_000)), **move})
    fields: Fields = {"clusters": {"main": cluster}, "timeline": timeline, "settle": "8s"}
    result = run(dice, fields)
    states = sum(1 for _ in states_written(result.trace))
    return Outcome((*violations(result), *leaders_wrong(result.trace)), states)


def states_written(trace: Trace) -> Iterator[tuple[Event, str, dict[str, Any]]]:
    """Every state of a partition that is written, with its path."""
    for event, change in changes(trace):
        if change[1].endswith("/state") and change[0] != "deleted" and change[3]:
            yield event, change[1], json.loads(change[3])


def leaders_wrong(trace: Trace) -> Iterator[str]:
    """States that are not as the pages say: replicas, leader, epochs."""
    alive = _alive_over_time(trace)
    homes = _replicas(trace)
    last: dict[str, dict[str, Any]] = {}
    for event, path, state in states_written(trace):
        before = last.get(path)
        epoch = 0 if before is None else before["leader_epoch"] + 1
        if (state["leader_epoch"], state["controller_epoch"]) != (epoch, 1):
            yield f"{path} has the epochs of {state}, after {before}"
        if before is not None and before["leader"] == state["leader"]:
            yield f"{path} is written though its leader stays: {state}"
        has_leader = state["leader"] in state["isr"]
        if not has_leader and (state["leader"], state["isr"]) != (-1, []):
            yield f"{path} names a leader that is not in sync: {state}"
        replicas = homes.get(path)
        if replicas is not None and not _was_alive(alive, event.t_us, replicas, state["isr"]):
            yield f"{path} names {state['isr']}, not the live ones of {replicas}, {event.t_us} us"
        last[path] = state
    for path, state in last.items():
        live = [one for one in homes.get(path, []) if one in alive[-1][1]]
        if bool(live) != (state["leader"] in live):
            yield f"{path} ends with {state}, with {live} alive"


def _alive_over_time(trace: Trace) -> list[tuple[int, frozenset[int]]]:
    """When which brokers were registered."""
    now: set[int] = set()
    found = [(0, frozenset(now))]
    for event, change in changes(trace):
        name = change[1].removeprefix(BROKER_IDS)
        if change[1].startswith(BROKER_IDS) and name.isdecimal():
            (now.discard if change[0] == "deleted" else now.add)(int(name))
            found.append((event.t_us, frozenset(now)))
    return found


def _replicas(trace: Trace) -> dict[str, list[int]]:
    """Path of a partition's state -> the brokers that hold the partition."""
    found: dict[str, list[int]] = {}
    for _, change in changes(trace):
        topic = change[1].removeprefix("/brokers/topics/")
        if change[1] == f"/brokers/topics/{topic}" and "/" not in topic and change[3]:
            for index, brokers in json.loads(change[3])["partitions"].items():
                found[f"{change[1]}/partitions/{index}/state"] = brokers
    return found


def _was_alive(
    alive: list[tuple[int, frozenset[int]]], t_us: int, replicas: list[int], isr: list[int]
) -> bool:
    """Whether these were the live replicas at some moment shortly before a write."""
    spans = zip(alive, [*alive[1:], (t_us + 1, frozenset[int]())], strict=True)
    return any(
        began_us <= t_us
        and ended_us >= t_us - LATE_US
        and sorted(isr) == sorted(one for one in replicas if one in living)
        for (began_us, living), (ended_us, _) in spans
    )


BOUNCES = RegressionClass(
    "bounces",
    "brokers with logs that leave, move and die under load: they close their logs and return",
    draw_bounces,
)
TOPICS = RegressionClass(
    "topics",
    "a topic that is deleted and created again: offsets begin at 0, no old message is read",
    draw_topics,
)
LEADERS = RegressionClass(
    "leaders",
    "the state of a partition while brokers die: leader, epochs and replicas as documented",
    draw_leaders,
)
