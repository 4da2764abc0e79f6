"""`watchkeeper compare`: one scenario in simulation and for real, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from watchkeeper.api import folder
from watchkeeper.api.named_profile import digest_of
from watchkeeper.api.result import Result
from watchkeeper.api.run_files import fill
from watchkeeper.api.tables import LIMIT_STYLE, plain_table, show_table, verdict_text
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.plan.bounds import variants_in, variants_in_words
from watchkeeper.model.properties.verdicts import Verdict, counted
from watchkeeper.model.trace.trace import named_run
from watchkeeper.run import run
from watchkeeper.run.comparison import Comparison, Side, Spread, ranged, verdicts_text
from watchkeeper.run.live_run import Where, abortable


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison, and the folders of its first runs."""

    comparison: Comparison
    homes: tuple[Path, Path]

    def to_json(self) -> dict[str, Any]:
        """Return the value that `--json` prints."""
        comparison = self.comparison
        first = comparison.live.results[0]
        return {
            "scenario": first.scenario.name,
            "variant": first.plan.variant,
            "consumers": variants_in(first.plan),
            "agrees": comparison.agrees,
            "declared": comparison.declared,
            "known_limit": " ".join(comparison.known_limits) or None,
            "differences": comparison.differences(),
            "simulated": _side_json(comparison, comparison.simulated),
            "live": _side_json(comparison, comparison.live),
            "zookeeper": first.zookeeper,
            "folders": [str(home) for home in self.homes],
        }


def compare(
    name: str,
    variant: str | None,
    out: Path,
    *,
    seeds: int,
    runs: int,
    where: Where,
    profile: Path | None = None,
) -> Compared:
    """Run a scenario `seeds` times simulated and `runs` times live; Stop where that fails."""
    INTERRUPTS.raise_from_now_on()
    scenario, plan = run.planned(name, variant)
    named = run.read_profile(profile)
    run_ids = [
        named_run(plan.name, plan.variant, "sim", 0, digest_of(named)),
        named_run(plan.name, plan.variant, "live", 0, ""),
    ]
    homes = (folder.prepare(out, run_ids[0]), folder.prepare(out, run_ids[1]))
    with folder.held(homes[1]):
        where = abortable(where, homes[1])
        live = [  # first, since they may be impossible
            _whole(run.live(scenario, plan, seed, where)) for seed in range(runs)
        ]
    simulated = [_whole(run.simulate(scenario, plan, seed, named)) for seed in range(seeds)]
    for home, results in zip(homes, (simulated, live), strict=True):
        fill(home, results[0], pictures=False)
    comparison = Comparison(Side(tuple(simulated)), Side(tuple(live)), scenario.live_differs)
    return Compared(comparison, homes)


def _whole(result: Result) -> Result:
    """The same result; Stop if its run was ended before its time."""
    if result.trace.header.partial:
        raise KeyboardInterrupt
    return result


# --- as text ---------------------------------------------------------------------------


def show(compared: Compared, to: Console) -> None:
    """Print the comparison of both worlds."""
    comparison = compared.comparison
    _show_headline(comparison, to)
    for limit in comparison.known_limits:
        to.print(Text(limit, LIMIT_STYLE), soft_wrap=True)
    for table in (_verdicts(comparison), _work(comparison), _times(comparison)):
        show_table(table, to)
        to.print()
    differences = comparison.differences()
    if comparison.declared:
        to.print(Text.assemble(("declared ", "dim"), comparison.declared), soft_wrap=True)
    for difference in differences:
        to.print(Text.assemble(("differs  ", "yellow"), difference), soft_wrap=True)
    if not differences:
        to.print("no difference in verdicts, owners, attempts, reads and operations")
    used = comparison.live.results[0].zookeeper
    if used:
        to.print(Text.assemble(("zookeeper ", "dim"), used), soft_wrap=True)
    here, there = compared.homes
    to.print(
        Text.assemble(("events   ", "dim"), f"watchkeeper diff {here} {there}"), soft_wrap=True
    )


def _show_headline(comparison: Comparison, to: Console) -> None:
    first = comparison.live.results[0]
    word, style = ("agree", "green") if comparison.agrees else ("differ", "bold red")
    many = len(comparison.simulated.results), len(comparison.live.results)
    line = Text.assemble(
        (first.scenario.name, "bold"),
        f", {variants_in_words(first.plan)}, {counted(many[0], 'simulated run')} and "
        f"{counted(many[1], 'live one')}: the verdicts ",
        (word, style),
    )
    to.print(line, soft_wrap=True)


def _verdicts(comparison: Comparison) -> Table:
    table = plain_table("", "simulated", "live", "")
    sides = comparison.simulated, comparison.live
    table.add_row("verdict", *(_verdict(verdicts_text(side.verdicts)) for side in sides))
    for name in comparison.properties:
        both = [verdicts_text(side.verdicts_of(name)) for side in sides]
        table.add_row(name, *map(_verdict, both))
    owners = [len(side.owners) for side in sides]
    same = comparison.live.owners.keys() <= comparison.simulated.owners.keys()
    texts = [
        "the same each time" if count == 1 else f"{count} different ways" for count in owners
    ]
    table.add_row("owners in the end", *texts, "" if same else Text("differ", "yellow"))
    return table


def _verdict(text: str) -> Text:
    shown = [verdict_text(verdict, limit) for verdict in Verdict for limit in (False, True)]
    return Text(text, {str(one): one.style for one in shown}.get(text, ""))


def _work(comparison: Comparison) -> Table:
    table = plain_table("requested", "simulated", "live", "")
    sides = comparison.simulated, comparison.live
    for group in comparison.groups:
        for what, word in (("attempts", "rebalances"), ("reads", "reads")):
            spreads = [side.work(group, what) for side in sides]
            table.add_row(f"{word} of {group}", *_cells(spreads))
    operations = [side.operations() for side in sides]
    for kind in sorted(operations[0].keys() | operations[1].keys()):
        table.add_row(kind, *_cells([side.get(kind) for side in operations]))
    return table


def _cells(spreads: list[Spread | None]) -> list[str | Text]:
    cells: list[str | Text] = ["-" if spread is None else ranged(spread) for spread in spreads]
    here, there = spreads
    apart = here is None or there is None or not here.touches(there)
    return [*cells, Text("differ", "yellow") if apart else ""]


def _times(comparison: Comparison) -> Table:
    table = plain_table("time to rest after", "simulated", "live", "live / simulated")
    simulated, live = comparison.simulated.rests(), comparison.live.rests()
    for what in sorted(simulated.keys() | live.keys()):
        here, there = simulated.get(what), live.get(what)
        ratio = f"{there.middle / here.middle:.1f}" if here and there and here.middle else "-"
        table.add_row(what, _duration(here), _duration(there), ratio)
    return table


def _duration(spread: Spread | None) -> str:
    """A median with its range, in milliseconds or seconds."""
    if spread is None:
        return "-"
    unit, factor = ("s", 1.0) if spread.middle >= 1 else ("ms", 1000.0)
    least, middle, most = (value * factor for value in (spread.least, spread.middle, spread.most))
    if least == most:
        return f"{middle:.3g} {unit}"
    return f"{middle:.3g} {unit} ({least:.3g} to {most:.3g})"


# --- as JSON ---------------------------------------------------------------------------


def _side_json(comparison: Comparison, side: Side) -> dict[str, Any]:
    return {
        "verdicts": dict(side.verdicts),
        "properties": {name: dict(side.verdicts_of(name)) for name in comparison.properties},
        "owners": [
            {"runs": number, "owners": dict(owners)} for owners, number in side.owners.items()
        ],
        "groups": {
            group: {what: _spread_json(side.work(group, what)) for what in ("attempts", "reads")}
            for group in comparison.groups
        },
        "operations": {kind: _spread_json(spread) for kind, spread in side.operations().items()},
        "time_to_rest_s": {what: _spread_json(spread) for what, spread in side.rests().items()},
    }


def _spread_json(spread: Spread | None) -> dict[str, float] | None:
    if spread is None:
        return None
    return {"least": spread.least, "median": spread.middle, "most": spread.most}
