"""What a failover of the controller costs, and how fast replication is simulated.

    python bench/control_plane.py [--rounds 3] [--partitions 100,1000,5000] [--json]

- **Failover**: a cluster with so many partitions of two replicas loses its controller. Between
  the election of the next one and the end of its failover: requests to ZooKeeper one after the
  other (round trips), the operations in them, requests to brokers, and virtual seconds.
- **Replication**: simulated messages that three replicas store and confirm, a second of the wall
  clock, one core.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind

PARTITIONS = (100, 1_000, 5_000)
A_TOPIC = 100
"""Partitions of each topic."""
MESSAGES_A_SECOND = 2_000
LOAD_S = 10


class Failover(NamedTuple):
    """What a failover took."""

    round_trips: int
    operations: int
    requests: int
    seconds: float


def _cluster(**more: Any) -> dict[str, Any]:
    return {
        "name": "bench",
        "about": "a control plane",
        "clusters": {
            "main": {
                "brokers": 4,
                "layout": "0.8",
                "leaders": "controller",
                "unclean_leader_election": False,
                "replication": {"leader_rebalance": "never"},
                **more,
            }
        },
        "groups": {},
    }


def failover(variant: str, partitions: int) -> Failover:
    """The failover after the death of the controller of a cluster with so many partitions."""
    topics = {
        f"t{index}": {"partitions": min(A_TOPIC, partitions), "replicas": 2}
        for index in range(max(partitions // A_TOPIC, 1))
    }
    scenario = {
        **_cluster(topics=topics),
        "timeline": [{"at": "60s", "crash": "controller"}],
        "settle": "60s",
    }
    result = simulate(scenario, variant=variant, seed=1)
    return _second_failover(result)


def _second_failover(result: Result) -> Failover:
    events = list(result.trace)
    begin = [event for event in events if event.kind == EventKind.CONTROLLER_ELECTED][1]
    end = next(
        event
        for event in events
        if event.kind == EventKind.FAILOVER_COMPLETED and event.seq > begin.seq
    )
    own = [event for event in events[begin.seq : end.seq] if event.node == begin.node]
    asked = [event for event in own if event.kind == EventKind.REQUEST]
    sent = sum(1 for event in own if event.kind == EventKind.CONTROL_SENT)
    operations = sum(event.detail.get("number", 1) for event in asked)
    return Failover(len(asked), operations, sent, (end.t_us - begin.t_us) / 1e6)


def replicated_a_second() -> float:
    """Messages that three replicas store and confirm, a second of the wall clock."""
    scenario = {
        **_cluster(topics={"clicks": {"partitions": 3, "replicas": 3}}),
        "timeline": [
            {
                "at": "3s",
                "produce": "clicks",
                "rate": f"{MESSAGES_A_SECOND}/s",
                "acks": "all",
                "for": f"{LOAD_S}s",
            }
        ],
        "settle": "5s",
    }
    began = time.perf_counter()
    result = simulate(scenario, variant="hardened", seed=1)
    took_s = time.perf_counter() - began
    confirmed = sum(
        len(event.detail["numbers"]) for event in result.trace.of_kind(EventKind.ACKNOWLEDGED)
    )
    assert confirmed > 0.9 * MESSAGES_A_SECOND * LOAD_S, "producers were served"
    return confirmed / took_s


def parsed() -> Namespace:
    """The options of this command."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of replication (3)")
    shown = ",".join(map(str, PARTITIONS))
    parser.add_argument("--partitions", default=shown, help=f"clusters of so many ({shown})")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = parsed()
    head = ("partitions", "variant", "round trips", "operations", "to brokers", "virtual s")
    report = Report("the control plane", head)
    for partitions in map(int, options.partitions.split(",")):
        found = {name: failover(name, partitions) for name in ("kafka_08", "hardened")}
        for name, cost in found.items():
            report.rows.append(
                [
                    str(partitions),
                    name,
                    str(cost.round_trips),
                    str(cost.operations),
                    str(cost.requests),
                    number(cost.seconds),
                ]
            )
        fewer = found["kafka_08"].round_trips / found["hardened"].round_trips
        what = f"fewer round trips, {partitions} partitions"
        report.bars.append(Bar(what, "at least", 10, "times", once(fewer)))
        report.data[str(partitions)] = {name: cost._asdict() for name, cost in found.items()}
    speeds = [replicated_a_second() for _ in range(options.rounds)]
    report.rows.append(["replicated messages/s", "hardened", number(max(speeds)), "", "", ""])
    report.data["replicated messages/s"] = speeds
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
