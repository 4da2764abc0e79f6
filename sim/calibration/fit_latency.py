"""Finds the profile under which the simulation takes as long as what was measured.

Theory of operation
  The simulation puts a round trip together from draws: a read is two hops and the server's
  time; a write waits for a log on a disk as well, and in an ensemble for the way to the
  followers and back. So each table is found by trial: begin with a guess, draw many round
  trips with the same chance each time, compare their quantiles with those measured, and
  move the table by what is missing.

  How long the server itself takes follows from what many requests at once take, divided by
  their number. That is an upper bound: a client in Python takes its share of it. Where it
  would be longer than a single request takes altogether, the single request counts.

  `reconnect`, elections, restarts and whatever else was not measured stay as they are in
  the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from watchkeeper.model.calibration.latency import (
    PIPELINED_READ,
    PIPELINED_WRITE,
    UNWATCHED,
    WATCHED_CROWD,
    Distribution,
    Measured,
    quantile,
)
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.engine.random_streams import Quantiles, Stream, quantiles

Anchors = tuple[tuple[float, int], ...]
"""Per cent and value, from 0 to 100, as `quantiles` takes them."""

LEVELS = (0, 1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.6, 100)
"""The anchors of a fitted table. It has 256 steps, so that nothing ends between the last two."""
DRAWS = 8192
ROUNDS = 40
MIDDLE = 75
"""Up to here the outcome moves with the level itself."""
LAST_STEP = (99.9 - 99.6) / (100 - 99.6)
"""Where in the last step of a table 99.9 per cent falls."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What follows from a measurement for the simulation."""

    hop: Anchors
    sync: Anchors
    read_us: int
    write_us: int
    fire_us: int
    expiry_lateness: Anchors

    @property
    def profile(self) -> Profile:
        """The default with what was measured in its place."""
        return replace(
            DEFAULT,
            hop=quantiles(self.hop),
            sync=quantiles(self.sync),
            read_us=self.read_us,
            write_us=self.write_us,
            fire_us=self.fire_us,
            expiry_lateness=quantiles(self.expiry_lateness),
        )


OF_CODECS = frozenset({"gzip", "snappy"})
"""The fields of a profile that are no latencies; `bench/codec_sizes.py` measures them."""
DEFAULTS = tuple(
    field.name
    for field in fields(Profile)
    if field.name not in {*Fitted.__dataclass_fields__, *OF_CODECS}
)
"""The latencies that no measurement determines."""


def fit(measured: Measured) -> Fitted:
    """The latencies that lead to what was measured."""
    read, write = measured.round_trips["read"], measured.round_trips["write"]
    read_us = _server_us(measured.batches[PIPELINED_READ], read, measured.in_flight)
    read_us = min(read_us, read.at(0) // 2)
    hop = _fit_hop(_targets(read), read_us)
    write_us = _server_us(measured.batches[PIPELINED_WRITE], read, measured.in_flight)
    write_us = min(write_us, max(write.at(10) - 2 * _median(hop), 1))
    sync = _fit_sync(_targets(write), hop, write_us, measured.servers)
    fire_us = _fire_us(measured)
    late = _fit_lateness(measured, quantiles(hop), quantiles(sync), fire_us)
    return Fitted(hop, sync, read_us, write_us, fire_us, late)


def _server_us(many: Distribution, single: Distribution, in_flight: int) -> int:
    """What each of many requests at once adds to the way there and back, seen from a read."""
    return max((many.median - single.median) // max(in_flight - 1, 1), 1)


def _fire_us(measured: Measured) -> int:
    """What a watch adds to the write that fires it: the server tells of it first."""
    with_watches = measured.batches[WATCHED_CROWD].median
    return max((with_watches - measured.batches[UNWATCHED].median) // measured.crowd, 0)


# --- tables by trial -------------------------------------------------------------------

Draw = Callable[[], int]


def _fit_hop(targets: Sequence[int], read_us: int) -> Anchors:
    """A hop, of which a read takes two."""

    def read(table: Quantiles) -> list[int]:
        hop = Stream(1).sampler(table)
        return [hop() + read_us + hop() for _ in range(DRAWS)]

    return _tried(targets, [max((target - read_us) // 2, 1) for target in targets], read, 2)


def _fit_sync(targets: Sequence[int], hop: Anchors, write_us: int, servers: int) -> Anchors:
    """What a log takes to its disk, of a write to an ensemble of so many."""
    hops = quantiles(hop)

    def write(table: Quantiles) -> list[int]:
        draw_hop, draw_sync = Stream(1).sampler(hops), Stream(2).sampler(table)
        return [
            _write_us(draw_hop, draw_sync, write_us, servers, turn % servers == 0)
            for turn in range(DRAWS)
        ]

    ways = 2 if servers == 1 else 5
    least = [max(target - ways * _median(hop), 1) for target in targets]
    return _tried(targets, least, write, 1 if servers == 1 else 2)


def _fit_lateness(measured: Measured, hop: Quantiles, sync: Quantiles, fire_us: int) -> Anchors:
    """How late the leader looks, when its observer learns of many ends one after the other.

    Sessions that fell silent throughout a tick are due at the end of two of them: two
    thirds of them share it, as an average of theirs.
    """
    together = max(measured.sessions * 2 // 3, 1)
    is_alone = measured.servers == 1

    def heard(table: Quantiles) -> list[int]:
        draw_hop, draw_sync = Stream(1).sampler(hop), Stream(2).sampler(sync)
        look = Stream(3).sampler(table)
        found: list[int] = []
        for _ in range(max(DRAWS // together, 1)):
            free_us = told_us = committed_us = 0
            for late_us in sorted(look() for _ in range(together)):
                way_us = draw_sync() if is_alone else 3 * draw_hop() + draw_sync()
                committed_us = max(committed_us, late_us + way_us)
                free_us = max(free_us, committed_us) + fire_us
                told_us = max(told_us, free_us + draw_hop())
                found.append(told_us)
        return found

    targets = _targets(measured.after_tick)
    return _tried(targets, targets, heard, 1)


def _write_us(hop: Draw, sync: Draw, write_us: int, servers: int, is_at_leader: bool) -> int:
    """A write, drawn as the ensemble draws it (`Ensemble._replicate`, `Server.apply`)."""
    way_there = hop()
    if not is_at_leader:
        way_there += hop()
    committed = sync()
    if servers > 1:
        committed = max(committed, hop() + sync() + hop())
    if not is_at_leader:
        committed += hop()
    return way_there + max(committed, write_us if is_at_leader else 0) + hop()


def _tried(
    targets: Sequence[int],
    first: Iterable[int],
    outcome: Callable[[Quantiles], list[int]],
    draws: int,
) -> Anchors:
    """The table whose outcome comes closest to the targets, of all that were tried.

    The outcome is made of so many draws from it.
    """
    values = _rising(first)
    best, least = values, -1
    for turn in range(ROUNDS):
        found = _quantiles_of(outcome(quantiles(_anchors(values))))
        missing = [wanted - here for wanted, here in zip(targets, found, strict=True)]
        error = sum(
            abs(difference) * 1000 // max(wanted, 1)
            for difference, wanted in zip(missing, targets, strict=True)
        )
        if least < 0 or error < least:
            best, least = values, error
        step = (1 - turn / ROUNDS) / (draws + 0.5)  # great strides first, and then small ones
        values = _rising(
            value + round(step * _at(_shown_at(level, draws), missing))
            for level, value in zip(LEVELS, values, strict=True)
        )
    return _anchors(best)


def _shown_at(level: float, draws: int) -> float:
    """At which level of the outcome a level of the table shows most.

    The outcome is long when any one of the draws is long.
    """
    return level if level <= MIDDLE else max(100 - draws * (100 - level), MIDDLE)


def _at(level: float, values: Sequence[int]) -> float:
    """The value at a level, between two of them where it falls there."""
    above = next(at for at, known in enumerate(LEVELS) if known >= level)
    if LEVELS[above] == level:
        return values[above]
    low, high = LEVELS[above - 1], LEVELS[above]
    return values[above - 1] + (values[above] - values[above - 1]) * (level - low) / (high - low)


def _anchors(values: Sequence[int]) -> Anchors:
    return tuple(zip(LEVELS, values, strict=True))


def _rising(values: Iterable[int]) -> list[int]:
    """The values, none of them less than the one before it."""
    rising: list[int] = []
    for value in values:
        rising.append(max(value, rising[-1] if rising else 1))
    return rising


def _quantiles_of(samples: list[int]) -> list[int]:
    ordered = sorted(samples)
    *values, most = (quantile(ordered, level) for level in LEVELS)
    return [*values, _end(values[-1], quantile(ordered, 99.9), most)]


def _targets(measured: Distribution) -> list[int]:
    """The quantiles of what was measured, at the levels that a table has."""
    low, high = measured.at(99), measured.at(99.9)
    last = low + (high - low) * 2 // 3  # 99.6 between 99 and 99.9
    values = [measured.at(level) for level in LEVELS if level not in (99.6, 100)]
    return [*values, last, _end(last, high, measured.at(100))]


def _end(last: int, high: int, most: int) -> int:
    """The end of a table: what is drawn in its last step then has 99.9 per cent right.

    The longest that was ever seen would make one draw in 256 far too long.
    """
    return min(most, last + round((high - last) / LAST_STEP)) if most > last else last


def _median(anchors: Anchors) -> int:
    return dict(anchors)[50]
