"""The battery: the searches of a scenario that states no bounds of its own.

One search says nothing of what its bound leaves out: of messages, of a group that was at rest
before the fault, of a late request. So a scenario without bounds gets a search for each cell of
a table: a row is a fault or a change of topics, a column tells how the group begins and whether
there are messages. The cells of the first rows are small; a cell gets a share of the time that
is left, and what smaller cells leave over goes to larger ones.

A verdict on the scenario needs every cell: a cell that is violated decides it, and a cell that
did not end leaves it unknown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from watchkeeper.check.check import (
    WITHOUT_REPLICAS,
    Explored,
    command_of,
    exit_code_of,
    explore_within,
    failed_in_words,
)
from watchkeeper.checker.search.search import DEFAULT_OPTIONS, Progress, SearchOptions
from watchkeeper.console.exit import HOLDS
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.audit.retry_budget import warnings_of
from watchkeeper.model.plan.bounds import Begin, Bounds, of_timeline, variants_in
from watchkeeper.model.plan.plan import GroupPlan, Plan
from watchkeeper.model.properties.verdicts import Finding, Property, Verdict, overall
from watchkeeper.scenarios import Scenario

TIMELINE = "the faults of its timeline"
FAULTS: Mapping[str, Mapping[str, int]] = {
    "no fault": {},
    "crash": {"crash": 1},
    "crash, restart": {"crash": 1, "restart": 1},
    "join": {"join": 1},
    "leave": {"leave": 1},
    "expiry": {"expire": 1},
    "disconnection": {"disconnect": 1},
    "lost request": {"lost_request": 1},
    "lost reply": {"lost_reply": 1},
    "late request": {"late_request": 1},
    "topic created": {"create_topic": 1},
    "partitions added": {"add_partitions": 1},
    "topic deleted": {"delete_topic": 1},
    "broker crash, restart": {"broker_crash": 1, "broker_restart": 1},
}
"""Row -> what the search may try once. `restart` needs a crash before it.

`abandon` has no row: no client holds *full cover* while a session outlives its program.
"""
OF_CONTROLLERS: Mapping[str, Mapping[str, int]] = {
    "broker expiry": {"broker_expire": 1},
    "broker disconnection": {"broker_disconnect": 1},
    "broker lost request": {"broker_lost_request": 1},
    "broker lost reply": {"broker_lost_reply": 1},
    "broker late request": {"broker_late_request": 1},
}
"""The further rows of a cluster whose brokers elect a controller."""
OF_THREE = ("no fault", "crash", "join", "leave", "expiry")
"""The rows that are searched with three members, too."""
COLUMNS: tuple[tuple[Begin, int], ...] = (
    ("settled", 0),
    ("fresh", 0),
    ("settled", 1),
    ("fresh", 1),
)
"""How the group begins, and the messages of each partition."""
PARTITIONS, BROKERS = 2, 2
ABOUT = (
    "the scenario has no `bounds:`, so each fault and each change of topics is tried once, with "
    f"two members of a group (with three where it says so), {PARTITIONS} or 3 partitions, and at "
    f"most {BROKERS} brokers"
)
TellOfCell = Callable[[str, Progress], None]
"""Receives the name of a cell and the progress of its search."""
FAIR_SHARES = 4
"""A cell may take so many equal shares of the time that is left."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One search of a battery."""

    row: str
    """What it tries once."""
    column: str
    """How the group begins, and its size."""
    group: str
    """The group that is searched alone; empty for all groups together."""
    plan: Plan
    bounds: Bounds

    @property
    def name(self) -> str:
        """The cell as a phrase."""
        return ", ".join(part for part in (self.group, self.row, self.column) if part)


@dataclass(frozen=True, slots=True)
class Searched:
    """A cell with its result."""

    cell: Cell
    explored: Explored | None
    """None where the budget was used up before the cell."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the cell; unknown where it was not searched to its end.

        A known limit of the scenario counts as held: no client can avoid it.
        """
        explored = self.explored
        if explored is None:
            return Verdict.UNKNOWN
        if explored.verdict is Verdict.VIOLATED and explored.is_allowed:
            return Verdict.HOLDS if explored.known_limit else Verdict.UNKNOWN
        if explored.counterexample is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if explored.searched.is_complete else Verdict.UNKNOWN

    @property
    def is_complete(self) -> bool:
        """Whether every state was searched."""
        return self.explored is not None and self.explored.searched.is_complete

    @property
    def violations(self) -> dict[str, int | None]:
        """Violated property -> the steps of its counterexample, the shortest one first.

        None where the search has no counterexample of it.
        """
        explored = self.explored
        if explored is None:
            return {}
        steps = {one.violates: len(one.steps) for one in explored.counterexamples}
        found = {name: steps.get(name) for name in explored.violated}
        return dict(sorted(found.items(), key=lambda one: (one[1] or 0, one[0])))

    @property
    def states(self) -> int:
        """How many states the search has seen."""
        return 0 if self.explored is None else self.explored.searched.progress.states


@dataclass(frozen=True, slots=True)
class Battery:
    """The results of all cells."""

    scenario: Scenario
    plan: Plan
    """The whole plan, before it was made smaller for a cell."""
    budget_s: float
    cells: tuple[Searched, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]
    seconds: float
    left_out: int = 0
    """How many searches did not begin because another one found a violation."""
    is_interrupted: bool = False
    """Whether an interrupt ended it; searches that did not begin are unknown."""
    options: SearchOptions = DEFAULT_OPTIONS
    """The options of each cell."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the scenario within the bounds of all cells."""
        verdicts = {searched.verdict for searched in self.cells}
        for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
            if verdict in verdicts:
                return verdict
        return overall(self.findings)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return HOLDS if self.known_limit else exit_code_of(self.verdict)

    @property
    def known_limit(self) -> str:
        """Why no client can avoid what is violated, where everything else holds; else empty."""
        if any(searched.verdict is not Verdict.HOLDS for searched in self.cells):
            return ""
        found = (cell.explored.known_limit for cell in self.cells if cell.explored is not None)
        return next(filter(None, found), "")

    @property
    def complete(self) -> int:
        """How many cells were searched to their end."""
        return sum(searched.is_complete for searched in self.cells)

    @property
    def violated(self) -> Explored | None:
        """The first cell that violates a property; else the first that shows a known limit."""
        found = (cell.explored for cell in self.cells if cell.verdict is Verdict.VIOLATED)
        limited = (
            cell.explored for cell in self.cells if cell.explored and cell.explored.violated
        )
        return next(found, next(limited, None))

    @property
    def command(self) -> str:
        """The command that repeats the battery."""
        return command_of(self.scenario, self.plan, self.options, budget_s=self.budget_s)


# --- the cells -------------------------------------------------------------------------


def cells_of(plan: Plan) -> tuple[list[Cell], list[str]]:
    """Return the cells of a plan, and remarks on what they leave out."""
    of_scenario = of_timeline(plan)
    bounds = of_scenario.bounds
    if not plan.groups:  # brokers alone: any order of their starts, and then two faults, is much
        bounds = replace(bounds, begin="settled")
    cells = [Cell(TIMELINE, _column(bounds.begin, 0), "", plan, bounds)]
    remarks = [ABOUT, *([WITHOUT_REPLICAS] if plan.replicates else [])]
    remarks += map(str, warnings_of(plan))
    if of_scenario.left_out:
        remarks.append(f"not explored: {', '.join(of_scenario.left_out)}")
    if len(plan.groups) < 2:
        return [*cells, *_cells(plan, "")], remarks
    for group in plan.groups:
        cells += _cells(replace(plan, groups=(group,)), group.name)
    remarks.append("each group is searched alone, but for the faults of the timeline")
    return cells, remarks


def _cells(plan: Plan, group: str) -> Iterator[Cell]:
    members = max((len(group.consumers) for group in plan.groups), default=0)
    rows = {**FAULTS, **(OF_CONTROLLERS if plan.elects_controllers else {})}
    for begin, messages in COLUMNS:
        for row, faults in rows.items():
            if _applies(plan.groups, faults) and (plan.groups or not messages):
                yield _cell(plan, group, faults, row, begin, messages)
    for row in OF_THREE if members > 2 else ():
        yield _cell(plan, group, FAULTS[row], row, "settled", 0, consumers=3)
    for row in OF_THREE[:2] if members > 2 else ():
        yield _cell(plan, group, FAULTS[row], row, "fresh", 0, consumers=3)


def _applies(groups: Sequence[GroupPlan], faults: Mapping[str, int]) -> bool:
    """Whether there is a process that the faults can strike."""
    return bool(groups) or all(kind.startswith("broker_") for kind in faults)


def _cell(
    plan: Plan,
    group: str,
    faults: Mapping[str, int],
    row: str,
    begin: Begin,
    messages: int,
    *,
    consumers: int = 2,
) -> Cell:
    partitions = max(PARTITIONS, consumers)
    bounds = Bounds(faults, None, messages, begin, consumers, partitions, BROKERS)
    column = _column(begin, messages) + (f", {consumers} members" if consumers > 2 else "")
    return Cell(row, column, group, plan, bounds)


def _column(begin: Begin, messages: int) -> str:
    return f"{begin}, messages" if messages else begin


# --- the searches ----------------------------------------------------------------------


@dataclass(slots=True)
class _Clock:
    """The time that is left for the cells that are left."""

    budget_s: float
    began_s: float = field(default_factory=time.monotonic)

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self.began_s

    def share_s(self, cells: int) -> float:
        """The time for the next of so many cells; 0 where none is left."""
        left = self.budget_s - self.passed_s
        return max(0.0, min(left, FAIR_SHARES * left / cells))


def explore_battery(
    scenario: Scenario,
    variant: str | None,
    *,
    budget_s: float,
    options: SearchOptions = DEFAULT_OPTIONS,
    tell: TellOfCell | None = None,
) -> Battery:
    """Search the cells of a scenario, one after the other, within a budget of time.

    `options` are those of each cell. Without `finds_all` the first violation ends the battery.
    """
    plan = scenario.plan(variant)
    cells, remarks = cells_of(plan)
    clock = _Clock(budget_s)
    done: list[Searched] = []
    for at, cell in enumerate(cells):
        if done and done[-1].verdict is Verdict.VIOLATED and not options.finds_all:
            break
        if INTERRUPTS.came:
            done.append(Searched(cell, None))
            continue
        share_s = clock.share_s(len(cells) - at)
        done.append(search_cell(scenario, cell, options, within_s=share_s, tell=tell))
    return Battery(
        scenario,
        plan,
        budget_s,
        tuple(done),
        tuple(_findings(done)),
        (*remarks, *failed_in_words(_failed_turns(done))),
        clock.passed_s,
        len(cells) - len(done),
        INTERRUPTS.came,
        options,
    )


def search_cell(
    scenario: Scenario,
    cell: Cell,
    options: SearchOptions,
    *,
    within_s: float = math.inf,
    tell: TellOfCell | None = None,
) -> Searched:
    """Search one cell of a scenario, unless no time is left for it."""
    if within_s <= 0:
        return Searched(cell, None)
    limits = options.limits
    seconds = min(within_s, math.inf if limits.seconds is None else limits.seconds)
    options = replace(options, limits=replace(limits, seconds=seconds))
    told = None if tell is None else lambda progress: tell(cell.name, progress)
    return Searched(
        cell, explore_within(scenario, cell.plan, cell.bounds, (), options, tell=told)
    )


# --- all cells together ----------------------------------------------------------------


def _failed_turns(cells: Sequence[Searched]) -> dict[str, str]:
    """Return for each process the first error that ended a turn of it, over all cells."""
    found: dict[str, str] = {}
    for searched in cells:
        failed = searched.explored.failed_turns if searched.explored is not None else {}
        found = {**failed, **found}
    return found


def _findings(cells: Sequence[Searched]) -> Iterator[Finding]:
    """Yield one finding for each property, over all cells."""
    found: dict[str, list[tuple[Searched, Finding]]] = {}
    for searched in cells:
        for finding in searched.explored.findings if searched.explored is not None else ():
            found.setdefault(finding.claim.name, []).append((searched, finding))
    for of_cells in found.values():
        yield _over_cells(of_cells[0][1].claim, of_cells)


def _over_cells(claim: Property, found: Sequence[tuple[Searched, Finding]]) -> Finding:
    for searched, finding in found:
        if finding.verdict is Verdict.VIOLATED:
            evidence = f"{searched.cell.name}: {finding.evidence}"
            return Finding(claim, Verdict.VIOLATED, evidence, exercised=finding.exercised)
    held = [finding for _, finding in found if finding.verdict is Verdict.HOLDS]
    if not held:
        return found[-1][1]
    exercised = sum(finding.exercised or 0 for finding in held)
    times = f"in {len(held)} of {len(found)} searches; exercised {exercised:,} times"
    return Finding(claim, Verdict.HOLDS, times, exercised=exercised)


def to_json(battery: Battery, files: list[str]) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    violated = battery.violated
    return {
        "scenario": battery.plan.name,
        "variant": battery.plan.variant,
        "consumers": variants_in(battery.plan),
        "world": "explore",
        "verdict": battery.verdict.value,
        "known_limit": battery.known_limit or None,
        "budget_s": battery.budget_s,
        "seconds": round(battery.seconds, 3),
        "complete": battery.complete == len(battery.cells),
        "searches": [_cell_to_json(searched) for searched in battery.cells],
        "properties": [finding.to_json() for finding in battery.findings],
        "remarks": list(battery.remarks),
        "steps": len(violated.counterexample.steps)
        if violated is not None and violated.counterexample is not None
        else None,
        "command": battery.command,
        "files": files,
    }


def _cell_to_json(searched: Searched) -> dict[str, Any]:
    explored = searched.explored
    return {
        "group": searched.cell.group,
        "row": searched.cell.row,
        "column": searched.cell.column,
        "verdict": searched.verdict.value,
        "states": searched.states,
        "stopped": "the budget was used up" if explored is None else explored.searched.stopped,
        "violated": [] if explored is None else explored.violated,
    }
