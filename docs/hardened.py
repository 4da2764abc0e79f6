"""Runs `hardened` under every kind of fault and makes a table of what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from hardened_faults import BY_FILTER, FAULTS, FOLLOWER, LEADER, ONLY_08, Timeline

from model.faults import VERBS
from model.properties import PROPERTIES
from model.verdicts import Verdict
from watchkeeper import Result, simulate

SEEDS = range(30)
LAYOUTS = ("0.7", "0.8")
OF_DISKS = {"disk_slow", "disk_full"}
"""They need brokers that store messages, whose scenarios have a page of their own."""
LOAD = {"at": "0s", "produce": "clicks", "rate": "100/s"}


def scenario(timeline: Timeline, layout: str, *, by_filter: bool = False) -> dict[str, Any]:
    """A small group under these faults."""
    replicas = {"replicas": 2} if layout == "0.8" else {}
    wanted = {"filter": {"white_list": ".*"}} if by_filter else {"streams": {"clicks": 1}}
    config = {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000}
    return {
        "name": "hardened",
        "about": "what hardened holds",
        "clusters": {
            "main": {
                "layout": layout,
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 2, **replicas}},
            }
        },
        "groups": {"group": {"consumers": 3, **wanted, "config": config}},
        "timeline": [LOAD, *timeline],
        "settle": "16s",
    }


@cache
def leader(layout: str, seed: int) -> str:
    """The server that chance makes the leader at the beginning of a run."""
    trace = simulate(scenario([], layout), seed=seed).trace
    return next(event.node for event in trace.of_kind("leads"))


def follower(layout: str, seed: int) -> str:
    """A server that is not the leader."""
    return next(name for name in ("zookeeper/1", "zookeeper/2") if name != leader(layout, seed))


def aimed(timeline: Timeline, layout: str, seed: int) -> Timeline:
    """The same timeline with the names of the servers that are meant."""
    names = {LEADER: leader, FOLLOWER: follower}
    return [
        {
            key: names[value](layout, seed)
            if isinstance(value, str) and value in names
            else value
            for key, value in entry.items()
        }
        for entry in timeline
    ]


def run(name: str, layout: str, seed: int) -> Result:
    """A run under this fault; AssertionError if an entry of its timeline did nothing."""
    timeline = aimed(FAULTS[name], layout, seed)
    fields = scenario(timeline, layout, by_filter=name in BY_FILTER)
    result = simulate(fields, seed=seed)
    if not all(one.is_real for one in result.effects):
        raise AssertionError(f"{name} had no effect with seed {seed} on {layout}")
    return result


def verdicts(name: str, seeds: Iterable[int] = SEEDS) -> dict[str, str]:
    """Property -> the worst that hardened makes of it under this fault, in both layouts."""
    found = {claim.name: Verdict.HOLDS for claim in PROPERTIES}
    for layout in LAYOUTS if name not in ONLY_08 else ("0.8",):
        for seed in seeds:
            for one in run(name, layout, seed).findings:
                before = found.get(one.claim.name)
                if before is not None and before is not Verdict.VIOLATED:
                    found[one.claim.name] = max(before, one.verdict, key=BADNESS.index)
    return {claim: verdict.value for claim, verdict in found.items()}


BADNESS = [Verdict.HOLDS, Verdict.UNKNOWN, Verdict.VIOLATED]


def verbs_without_a_row() -> set[str]:
    """The verbs that can be done to a group and are in no timeline here."""
    used = {key for timeline in FAULTS.values() for entry in (LOAD, *timeline) for key in entry}
    return {verb.name for verb in VERBS.values() if verb.worlds} - used - OF_DISKS


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
        f"fault, {len(SEEDS)} where only the 0.8 layout knows it. Every verb of the timeline is "
        "among them, but for those of disks, which only brokers that store messages have. Chance "
        "proves nothing; it is a table of what was tried and found.",
        table(["fault", *(claim.name for claim in PROPERTIES)], rows()),
        "*Strict single ownership* is the exception, and it has to be. A process that stands "
        "still, or that ZooKeeper cannot reach, learns of the end of its session only when it "
        "runs and is told; even at best the news needs a moment, and by then others may own what "
        "it fetches. A client can only make the window short: `hardened` stops fetching as soon "
        "as its connection is in doubt, so what remains is the moment between waking and "
        "noticing. Whoever cannot bear even that has to fence what is written to, with a number "
        "that grows with each owner.",
    )
