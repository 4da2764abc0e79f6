"""Measures a simulated ZooKeeper the way a real one is measured: the same programs."""

from __future__ import annotations

from dataclasses import replace

from watchkeeper.model.actor.program import Program
from watchkeeper.model.calibration.latency import Measured, Samples, measured, merged
from watchkeeper.model.calibration.probe_program import Procedure, Sizes
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.world import simulate

SCENARIO = """
name: calibration
about: What is done to a real ZooKeeper to measure it, done to a simulated one.
variant: hardened
clusters:
  main:
    zookeeper: {{servers: {servers}, tick: {tick_us}us}}
    brokers: [{{id: 0, starts: never}}]
    layout: "0.7"
    topics: {{none: {{partitions_per_broker: 1}}}}
groups: {{{groups}}}
timeline: [{timeline}]
settle: {settle_us}us
"""
GROUP = (
    "{name}: {{consumers: {number}, streams: {{none: 1}}, starts: 1s, apart: {apart_us}us, "
    "config: {{zookeeper.session.timeout.ms: {timeout_ms}}}}}"
)
SEEDS_A_SERVER = 6
BEGIN_US = 1_000_000
SILENT_AFTER_US = 60_000
"""How long after its start a sleeper is killed: it has its ephemeral, and has not pinged."""
ASKER_TIMEOUT_MS = 10_000


def simulated(
    profile: Profile = DEFAULT,
    *,
    servers: int,
    tick_us: int,
    sizes: Sizes,
) -> Measured:
    """Measure the simulated ensemble under a profile, with several seeds together.

    A client is at one server at a time, and which one it is makes a difference; each seed
    is another draw.
    """
    seeds = SEEDS_A_SERVER * servers
    share = replace(
        sizes.shared_by(seeds),
        warm=0,
        watched=-(-sizes.watched // SEEDS_A_SERVER),
        crowds=-(-sizes.crowds // SEEDS_A_SERVER),
    )
    timeout_us = 2 * tick_us
    parts = []
    for seed in range(seeds):
        for plan in (_asking(servers, tick_us, share), _silent(servers, tick_us, share)):
            parts.append(Samples(simulate(plan, seed, profile=profile).trace.rows))
    return measured(
        merged(parts),
        sizes,
        servers=servers,
        tick_us=tick_us,
        timeout_us=timeout_us,
        phase_us=0,
    )


def _asking(servers: int, tick_us: int, sizes: Sizes) -> Plan:
    groups = [_group(role, 1, 0, ASKER_TIMEOUT_MS) for role in ("watcher", "asker")]
    return _plan(servers, tick_us, sizes, groups, [], LONGEST_US)


def _silent(servers: int, tick_us: int, sizes: Sizes) -> Plan:
    """Sessions that begin throughout a tick, and fall silent one after the other."""
    apart_us = tick_us // sizes.sessions + 1
    groups = [
        _group("observer", 1, 0, ASKER_TIMEOUT_MS),
        _group("sleeper", sizes.sessions, apart_us, 2 * tick_us // 1000).replace(
            "starts: 1s", "starts: 2s"
        ),
    ]
    crashes = [
        f"{{at: {2 * BEGIN_US + at * apart_us + SILENT_AFTER_US}us, crash: sleeper/{at}}}"
        for at in range(sizes.sessions)
    ]
    return _plan(servers, tick_us, sizes, groups, crashes, 6 * tick_us)


def _group(name: str, number: int, apart_us: int, timeout_ms: int) -> str:
    return GROUP.format(name=name, number=number, apart_us=apart_us, timeout_ms=timeout_ms)


def _plan(
    servers: int,
    tick_us: int,
    sizes: Sizes,
    groups: list[str],
    timeline: list[str],
    settle_us: int,
) -> Plan:
    text = SCENARIO.format(
        servers=servers,
        tick_us=tick_us,
        groups=", ".join(groups),
        timeline=", ".join(timeline),
        settle_us=settle_us,
    )
    program = Program(Procedure(sizes).turn, None, None)
    return from_text("calibration.yaml", text).plan(program=program)


LONGEST_US = 300_000_000
"""Virtual time in which the asker is surely done; nothing happens in what is left of it."""
