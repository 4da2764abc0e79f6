"""A simulation that is measured and fitted again takes as long as it took before."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from bench.support.simulated_zookeeper import simulated

from watchkeeper.model.calibration.latency import (
    Distribution,
    Measured,
    NoMeasurement,
    Samples,
    distribution,
    first_of_cycle,
    quantile,
)
from watchkeeper.model.calibration.probe_program import PHASE, Sizes
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.calibration.fit_latency import DEFAULTS, Fitted, fit
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.engine.random_streams import quantiles

SIZES = Sizes(0, 6000, 600, 24, 100, 12, (10,), 120, 24, 50, 24)
TICK_US = 500_000

SLOW = replace(
    DEFAULT,
    hop=quantiles([(0, 300), (10, 350), (50, 500), (90, 800), (98, 1600), (100, 5000)]),
    sync=quantiles([(0, 900), (10, 1200), (50, 2000), (90, 4000), (98, 7000), (100, 12_000)]),
    read_us=90,
    write_us=160,
    fire_us=75,
    expiry_lateness=quantiles([(0, 1000), (50, 30_000), (100, 90_000)]),
)
"""An installation on slow disks, with a network in between."""
PROFILES = {"default": DEFAULT, "slow": SLOW}
CASES = [
    pytest.param(name, servers, marks=pytest.mark.slow if servers > 1 else ())
    for name in PROFILES
    for servers in (1, 3)
]


@cache
def of(profile: Profile, servers: int) -> Measured:
    """What is measured of a simulation under a profile."""
    return simulated(profile, servers=servers, tick_us=TICK_US, sizes=SIZES)


@cache
def found(name: str, servers: int) -> Fitted:
    """What the fit makes of it."""
    return fit(of(PROFILES[name], servers))


def is_near(wanted: int, got: int, per_cent: int) -> bool:
    """Whether one value is so near to another."""
    return abs(got - wanted) * 100 <= per_cent * wanted


@pytest.mark.parametrize(("name", "servers"), CASES)
@pytest.mark.parametrize("what", ["read", "write", "create", "delete"])
def test_round_trips_are_as_they_were(name: str, servers: int, what: str) -> None:
    """Measured, fitted, simulated and measured again: the same quantiles."""
    before = of(PROFILES[name], servers).round_trips[what]
    after = of(found(name, servers).profile, servers).round_trips[what]

    assert is_near(before.median, after.median, 5)
    assert is_near(before.at(10), after.at(10), 8)
    assert is_near(before.at(90), after.at(90), 25)


@pytest.mark.parametrize(("name", "servers"), CASES)
def test_expiry_is_as_it_was(name: str, servers: int) -> None:
    """The ends of sessions, counted from the end of a tick."""
    before = of(PROFILES[name], servers).after_tick
    after = of(found(name, servers).profile, servers).after_tick

    assert is_near(before.median, after.median, 15)
    assert is_near(before.at(90), after.at(90), 15)


@pytest.mark.parametrize(("name", "servers"), CASES)
def test_what_a_server_spends_is_found(name: str, servers: int) -> None:
    """From many requests at once, and from a multi whose watches fire."""
    wanted, got = PROFILES[name], found(name, servers)

    assert abs(got.read_us - wanted.read_us) <= 3
    assert abs(got.fire_us - wanted.fire_us) <= 10
    if servers == 1:  # with three the way to the followers is in it
        assert abs(got.write_us - wanted.write_us) <= 12


def test_the_two_installations_are_distinguished() -> None:
    """The tests above could not tell, were there no difference."""
    slow, fast = of(SLOW, 1), of(DEFAULT, 1)

    assert not is_near(fast.round_trips["read"].median, slow.round_trips["read"].median, 100)
    assert not is_near(fast.round_trips["write"].median, slow.round_trips["write"].median, 100)
    assert not is_near(fast.after_tick.median, slow.after_tick.median, 100)


def test_a_fit_is_the_same_each_time() -> None:
    """Nothing in it depends on chance."""
    assert fit(of(SLOW, 1)) == found("slow", 1)


def test_a_slow_disk_can_be_measured() -> None:
    """Even if some session falls silent before its first write is answered."""
    disk = quantiles([(0, 1000), (90, 60_000), (100, 400_000)])
    few = replace(SIZES, singles=60, others=6, batches=6, multis=6, watched=6, crowds=6)
    found = simulated(replace(DEFAULT, sync=disk), servers=1, tick_us=TICK_US, sizes=few)

    assert 0 < found.after_tick.number < 6 * SIZES.sessions


def test_what_is_not_measured_stays() -> None:
    """And is named."""
    profile = found("slow", 1).profile

    assert "election" in DEFAULTS
    assert all(getattr(profile, name) == getattr(DEFAULT, name) for name in DEFAULTS)


# --- reading a trace -------------------------------------------------------------------


def test_quantiles_are_between_what_was_seen() -> None:
    """The least, the most, and what falls between two values."""
    values = [10, 20, 30, 40, 50]

    assert [quantile(values, level) for level in (0, 25, 50, 100)] == [10, 20, 30, 50]
    assert quantile(values, 90) == 46
    assert distribution([7], "it") == Distribution(1, (7,) * 14)


def test_nothing_measured_is_said() -> None:
    """A distribution of nothing is none."""
    with pytest.raises(NoMeasurement, match="shows how long a watch takes"):
        distribution([], "a watch")


def row(t_us: int, node: str, kind: str, **detail: object) -> tuple[object, ...]:
    """A row of a trace."""
    return (t_us, node, kind, 0, "", "", "", 0, detail)


def test_times_are_read_from_a_trace() -> None:
    """From asking to the answer; a watch from the answer of the write that fires it."""
    samples = Samples(
        [  # type: ignore[list-item]
            row(0, "asker/0", PHASE, what="warm up"),
            row(0, "asker/0", EventKind.REQUEST, op="get", path="/a"),
            row(1, "asker/0", EventKind.RESPONSE, op="get"),
            row(1, "asker/0", EventKind.REQUEST, op="multi"),
            row(1, "asker/0", EventKind.RESPONSE, op="multi"),
            row(1, "asker/0", PHASE, what="round trip"),
            row(10, "asker/0", EventKind.REQUEST, op="get", path="/a"),
            row(30, "asker/0", EventKind.RESPONSE, op="get"),
            row(40, "asker/0", EventKind.REQUEST, op="create", path="/watched-0"),
            row(70, "watcher/0", EventKind.NOTIFIED, what="created", path="/watched-0"),
            row(75, "asker/0", EventKind.RESPONSE, op="create"),
            row(80, "sleeper/0", EventKind.REQUEST, op="create", path="/asleep-0"),
            row(85, "sleeper/0", EventKind.RESPONSE, op="create"),
            row(95, "observer/0", EventKind.NOTIFIED, what="created", path="/asleep-0"),
            row(900, "observer/0", EventKind.NOTIFIED, what="deleted", path="/asleep-0"),
        ]
    )

    assert samples.singles == {"read": [20]}
    assert samples.batches == {}
    assert samples.watch == [-5]
    assert samples.write_to_watch == [30]
    assert (samples.signs_us, samples.ends_us) == ({"/asleep-0": 80}, {"/asleep-0": 900})


def test_what_a_program_could_not_do_is_no_measurement() -> None:
    """Its reason is reported."""
    ended = row(5, "asker/0", EventKind.ENDED, why="there is no znode /a", failed=True)
    with pytest.raises(NoMeasurement, match="asker/0 could not go on: there is no znode /a"):
        Samples([ended])  # type: ignore[list-item]


@pytest.mark.parametrize("origin", [0, 40, 90])
def test_ticks_are_seen_from_what_crowds_behind_them(origin: int) -> None:
    """Where no process says when a tick ends, the moments do."""
    moments = [origin + 100 * turn + late for turn, late in enumerate((3, 5, 4, 9, 3, 17))]

    assert first_of_cycle(moments, 100) == (origin + 3) % 100
