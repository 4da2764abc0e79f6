"""Simulated and live runs of one scenario side by side, and where they differ.

What a run decides has to be the same in both worlds: verdicts, and who owns what in the
end. What it takes, attempts and operations, has to lie where the simulated runs of
several seeds lie. How long it takes depends on the machine, and is only shown.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from watchkeeper.api.result import Result
from watchkeeper.model.properties.verdicts import verdict_word
from watchkeeper.model.registry.paths import parse_owner
from watchkeeper.model.trace.counts import operations_in
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

Owners = tuple[tuple[str, str], ...]
"""(group, topic and partition) and the member that holds it, sorted."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A number as several runs have it."""

    least: float
    middle: float
    most: float

    def touches(self, other: Spread) -> bool:
        """Whether the two ranges have a number in common."""
        return self.least <= other.most and other.least <= self.most


def spread(values: Iterable[float]) -> Spread | None:
    """The range of some numbers and their median; None of none."""
    found = sorted(values)
    return Spread(found[0], statistics.median(found), found[-1]) if found else None


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one world."""

    results: tuple[Result, ...]

    @property
    def verdicts(self) -> Counter[str]:
        """Return the number of runs with each verdict; a known limit is no violation."""
        return Counter(verdict_word(one.verdict, one.known_limit) for one in self.results)

    def verdicts_of(self, name: str) -> Counter[str]:
        """The same of one property."""
        return Counter(
            verdict_word(one.judgement.finding(name).verdict, one.known_limit)
            for one in self.results
        )

    @property
    def known_limits(self) -> tuple[str, ...]:
        """Why no client can avoid what runs violate; empty where no run is at a known limit."""
        return tuple(dict.fromkeys(one.known_limit for one in self.results if one.known_limit))

    @property
    def owners(self) -> Counter[Owners]:
        """Return the owners at the end, with the number of runs."""
        return Counter(final_owners(result.trace) for result in self.results)

    def work(self, group: str, what: str) -> Spread | None:
        """Attempts or reads of a group."""
        groups = [result.judgement.stats["groups"][group] for result in self.results]
        return spread(group[what] for group in groups)

    def operations(self) -> dict[str, Spread]:
        """Return the number of requests of each kind of operation."""
        counts = [operations_in(result.trace) for result in self.results]
        kinds = sorted({kind for count in counts for kind in count})
        found = {kind: spread(count[kind] for count in counts) for kind in kinds}
        return {kind: spread for kind, spread in found.items() if spread is not None}

    def rests(self) -> dict[str, Spread]:
        """Return the seconds from a change to the group's rest, by kind of change."""
        times: dict[str, list[float]] = {}
        for result in self.results:
            for change in result.judgement.changes:
                if change.rest_after_us is not None:
                    times.setdefault(_sort_of(change.what), []).append(change.rest_after_us / 1e6)
        found = {what: spread(values) for what, values in sorted(times.items())}
        return {what: spread for what, spread in found.items() if spread is not None}


def _sort_of(what: str) -> str:
    """Return the kind of change, without the name of the member."""
    if what.startswith("/"):
        word = what.rpartition(" ")[2]
        return f"broker {word}" if what.startswith("/brokers/ids/") else f"topic {word}"
    return f"member {what.rpartition(' ')[2]}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two worlds that ran one scenario."""

    simulated: Side
    live: Side
    declared: str | None
    """Why the scenario says that they may differ."""

    @property
    def properties(self) -> list[str]:
        """Every property of either world that counts, in the order of the report."""
        findings = [result for side in (self.simulated, self.live) for result in side.results]
        names = [
            finding.claim.name
            for result in findings
            for finding in result.findings
            if finding.counts
        ]
        return list(dict.fromkeys(names))

    @property
    def known_limits(self) -> tuple[str, ...]:
        """Why no client can avoid what runs of either world violate."""
        return tuple(dict.fromkeys((*self.simulated.known_limits, *self.live.known_limits)))

    @property
    def groups(self) -> list[str]:
        """The groups of the scenario."""
        return sorted(self.simulated.results[0].judgement.stats["groups"])

    @property
    def agrees(self) -> bool:
        """Whether each live run came to a verdict that a simulated one came to."""
        return all(
            any(agree(simulated, live) for simulated in self.simulated.results)
            for live in self.live.results
        )

    @property
    def exit_code(self) -> int:
        """0 if the verdicts agree or the scenario says why not, else 1."""
        return 0 if self.agrees or self.declared else 1

    def differences(self) -> list[str]:
        """Return a sentence for each difference; durations are not compared."""
        return [*self._verdicts(), *self._owners(), *self._work()]

    def _verdicts(self) -> Iterator[str]:
        if not self.agrees:
            texts = [verdicts_text(side.verdicts) for side in (self.simulated, self.live)]
            yield f"the verdict: {texts[0]} simulated, {texts[1]} live"
        for name in self.properties:
            simulated, live = self.simulated.verdicts_of(name), self.live.verdicts_of(name)
            if not live.keys() <= simulated.keys():
                yield f"{name}: {verdicts_text(simulated)} simulated, {verdicts_text(live)} live"

    def _owners(self) -> Iterator[str]:
        for owners in self.live.owners:
            if owners in self.simulated.owners:
                continue
            (nearest, _), *_ = self.simulated.owners.most_common()
            for place, name in sorted(set(owners) - set(nearest)):
                usual = dict(nearest).get(place, "no member")
                yield f"in the end {place} is {usual}'s simulated, {name}'s live"
            for place, name in sorted(set(nearest) - set(owners)):
                if place not in dict(owners):
                    yield f"in the end {place} is {name}'s simulated, no member's live"

    def _work(self) -> Iterator[str]:
        for group in self.groups:
            for what in ("attempts", "reads"):
                simulated, live = self.simulated.work(group, what), self.live.work(group, what)
                if simulated and live and not simulated.touches(live):
                    yield f"{what} of {group}: {ranged(simulated)} simulated, {ranged(live)} live"
        simulated_operations, live_operations = (
            self.simulated.operations(),
            self.live.operations(),
        )
        for kind in sorted(simulated_operations.keys() | live_operations.keys()):
            here = simulated_operations.get(kind, NEVER)
            there = live_operations.get(kind, NEVER)
            if not here.touches(there):
                yield f"operations, {kind}: {ranged(here)} simulated, {ranged(there)} live"


NEVER = Spread(0, 0, 0)


def agree(simulated: Result, live: Result) -> bool:
    """Whether both come to the same verdict for the same reasons, or as is expected of both."""
    if simulated.verdict is not live.verdict:
        return False
    return set(simulated.violated) == set(live.violated) or live.met is True


def verdicts_text(verdicts: Counter[str]) -> str:
    """Verdicts with their counts, as they are printed: `holds` or `holds 4, unknown 1`."""
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return ", ".join(f"{verdict} {number}" for verdict, number in verdicts.most_common())


def ranged(spread: Spread) -> str:
    """A range of integers as it is printed."""
    if spread.least == spread.most:
        return f"{spread.least:,.0f}"
    return f"{spread.least:,.0f} to {spread.most:,.0f}"


def final_owners(trace: Trace) -> Owners:
    """Return the owners at the end, by the registry: (group: partition, member)."""
    claims: dict[str, tuple[str, int]] = {}
    names: dict[tuple[str, int], str] = {}
    for event in trace:
        if event.kind == EventKind.SESSION_OPENED:
            names[event.node, event.session] = event.detail["by"]
        for change in event.detail.get("did", ()):
            found = parse_owner(change[1])
            if found is None:
                continue
            place = f"{found[0]}: {found[1]}"
            if change[0] == "deleted":
                claims.pop(place, None)
            else:
                claims[place] = (event.node, change[2])
    return tuple(sorted((place, names.get(member, "?")) for place, member in claims.items()))
