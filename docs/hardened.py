"""Runs `hardened` under every kind of fault and makes a table of what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from model.properties import PROPERTIES
from model.verdicts import Verdict
from watchkeeper import simulate

SEEDS = range(6)
LAYOUTS = ("0.7", "0.8")

FAULTS: dict[str, list[dict[str, Any]]] = {
    "a consumer is killed": [{"at": "6s", "crash": "group/1"}],
    "a consumer is killed and comes back under its id": [
        {"at": "6s", "crash": "group/1"},
        {"at": "6500ms", "restart": "group/1"},
    ],
    "a consumer's machine is lost": [{"at": "6s", "crash_host": "group/1"}],
    "a consumer leaves": [{"at": "6s", "leave": "group/1"}],
    "a consumer stands still past its session": [{"at": "6s", "pause": "group/1", "for": "5s"}],
    "a session ends and its client learns at once": [{"at": "6s", "expire": "group/1"}],
    "a session ends and its client is not told": [
        {"at": "6s", "expire": "group/1", "unknown": "4s"}
    ],
    "a connection breaks": [{"at": "6s", "disconnect": "group/1", "for": "300ms"}],
    "the reply to a claim is lost": [
        {"on": {"node": "group/2", "asks": "claim"}, "lose": "reply"}
    ],
    "a claim is lost": [{"on": {"node": "group/2", "asks": "claim"}, "lose": "request"}],
    "a claim is lost and lands later": [
        {"on": {"node": "group/2", "asks": "claim"}, "lose": "request", "lands_after": "400ms"}
    ],
    "a release is lost and lands later": [
        {"on": {"node": "group/0", "asks": "release"}, "lose": "request", "lands_after": "400ms"}
    ],
    "killed between two steps of a rebalance": [
        {"on": {"node": "group/2", "asks": "claim", "when": "after_reply"}, "crash": "group/2"}
    ],
    "nothing passes to or from ZooKeeper": [{"at": "6s", "partition": "group/1", "for": "5s"}],
    "nothing passes to ZooKeeper": [
        {"at": "6s", "partition": "group/1", "direction": "to", "for": "5s"}
    ],
    "nothing passes from ZooKeeper": [
        {"at": "6s", "partition": "group/1", "direction": "from", "for": "5s"}
    ],
    "everything takes longer": [{"at": "500ms", "delay": "group/1", "by": "80ms", "for": "8s"}],
    "a follower falls behind": [
        {"at": "500ms", "lag": "zookeeper/1", "by": "700ms", "for": "8s"},
        {"at": "500ms", "lag": "zookeeper/2", "by": "700ms", "for": "8s"},
        {"at": "500ms", "lag": "zookeeper/3", "by": "700ms", "for": "8s"},
    ],
    "a server of ZooKeeper is killed": [{"at": "6s", "crash": "zookeeper/1"}],
    "a server of ZooKeeper stands still": [{"at": "6s", "pause": "zookeeper/1", "for": "5s"}],
    "a server of ZooKeeper is cut off": [{"at": "6s", "partition": "zookeeper/1", "for": "5s"}],
    "ZooKeeper is restarted server by server": [
        {"at": "6s", "rolling_restart": "zookeeper", "each": "2s"}
    ],
    "ZooKeeper has no quorum": [{"at": "6s", "quorum_loss": "zookeeper", "for": "6s"}],
    "a broker is killed and comes back": [
        {"at": "6s", "crash": "broker/1"},
        {"at": "11s", "restart": "broker/1"},
    ],
    "a broker moves": [{"at": "6s", "move": "broker/1", "to": "spare.example:9093"}],
    "partitions are added": [
        {"at": "6s", "add_partitions": "clicks", "partitions_per_broker": 3}
    ],
}

MAY_BE_IDLE = frozenset({"a follower falls behind"})
"""Where some entries have no effect by nature: a leader never falls behind itself."""


def scenario(timeline: list[dict[str, Any]], layout: str) -> dict[str, Any]:
    """A small group under these faults."""
    return {
        "name": "hardened",
        "about": "what hardened holds",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": 3,
                "streams": {"clicks": 1},
                "config": {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000},
            }
        },
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "100/s"}, *timeline],
        "settle": "16s",
    }


def verdicts(name: str) -> dict[str, str]:
    """Property -> what hardened makes of it under this fault, over all seeds and layouts."""
    found = {claim.name: "holds" for claim in PROPERTIES}
    for layout in LAYOUTS:
        for seed in SEEDS:
            result = simulate(scenario(FAULTS[name], layout), seed=seed)
            if name not in MAY_BE_IDLE and not all(one.is_real for one in result.effects):
                raise AssertionError(f"{name} had no effect with seed {seed} on {layout}")
            for one in result.findings:
                if one.claim.name in found and one.verdict is not Verdict.HOLDS:
                    found[one.claim.name] = one.verdict.value
    return found


def rows() -> Iterator[list[str]]:
    """A row for each fault."""
    for name in FAULTS:
        found = verdicts(name)
        yield [name, *(f"**{said}**" if said != "holds" else said for said in found.values())]


def hardened_page(page: Callable[..., str], table: Callable[..., str]) -> str:
    """The page: the table, and why its few exceptions are none that a client could mend."""
    runs = len(SEEDS) * len(LAYOUTS)
    return page(
        "What `hardened` holds",
        f"Three consumers, two brokers, four partitions, both layouts; {runs} runs of each "
        "fault. Chance proves nothing; it is a table of what was tried and found.",
        table(["fault", *(claim.name for claim in PROPERTIES)], rows()),
        "*Strict single ownership* is the exception, and it has to be. A process that stands "
        "still, or that ZooKeeper cannot reach, learns of the end of its session only when it "
        "runs and is told; by then others may own what it fetches. A client can only make the "
        "window short: `hardened` stops fetching as soon as its connection is in doubt, so what "
        "remains is the moment between waking and noticing. Whoever cannot bear even that has to "
        "fence what is written to, with a number that grows with each owner.",
    )
