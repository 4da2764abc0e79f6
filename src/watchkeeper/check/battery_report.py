"""The result of a battery as text: a table of its cells, the properties, a counterexample."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from watchkeeper.api.tables import LIMIT_STYLE, plain_table, show_table, verdict_text
from watchkeeper.check.battery import TIMELINE, Battery, Searched
from watchkeeper.check.check import bound_in_words
from watchkeeper.check.report import (
    labelled_line,
    print_counterexample,
    print_files,
    print_properties,
)
from watchkeeper.model.plan.bounds import variants_in_words
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, Verdict, counted

CELL = (
    "the violated properties, each with the steps of its nearest counterexample, or the number "
    "of states; '+ …' where a search has not seen all of them"
)


def report(battery: Battery, to: Console, files: list[str]) -> None:
    """Print the result of a battery."""
    to.print(_headline(battery), soft_wrap=True)
    if battery.known_limit:
        to.print(Text(battery.known_limit, LIMIT_STYLE), soft_wrap=True)
    violated = battery.violated
    print_properties(
        battery.findings,
        to,
        has_counterexample=violated is not None,
        is_limit=bool(battery.known_limit),
    )
    to.print()
    if violated is not None and violated.counterexample is not None:
        print_counterexample(violated.counterexample, to)
        to.print()
        labelled_line(to, "bound", bound_in_words(violated))
    if not battery.left_out:
        _print_cells(battery, to)
        if any(searched.violations for searched in battery.cells):
            to.print(Text(f"a cell has {CELL}", "dim"), soft_wrap=True)
        to.print()
    labelled_line(to, "searches", searches_in_words(battery))
    labelled_line(to, "took", took_in_words(battery))
    for remark in battery.remarks:
        labelled_line(to, "note", remark)
    print_files(to, battery.command, files)


def _headline(battery: Battery) -> Text:
    verdict = verdict_text(battery.verdict, battery.known_limit)
    more = " within the bounds of each search" if battery.verdict is Verdict.HOLDS else ""
    name = f"{battery.plan.name}, {variants_in_words(battery.plan)}"
    return Text.assemble(f"{name}, every interleaving: ", verdict, more)


def _print_cells(battery: Battery, to: Console) -> None:
    """Print a table for each group: a row for each fault, a column for each beginning."""
    groups = list(dict.fromkeys(searched.cell.group for searched in battery.cells))
    for group in groups:
        cells = [searched for searched in battery.cells if searched.cell.group == group]
        _print_group(group, cells, to)


def _print_group(group: str, cells: list[Searched], to: Console) -> None:
    columns, rows = rows_of(cells)
    table = plain_table(f"states of {group}" if group else "states", *columns)
    for row in rows:
        table.add_row(*row)
    show_table(table, to)


def rows_of(cells: Sequence[Searched]) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a table of searches, and its rows: a fault, then its cells."""
    found = {(one.cell.row, one.cell.column): one for one in cells}
    of_faults = [one.cell for one in cells if one.cell.row != TIMELINE] or [cells[0].cell]
    columns = list(dict.fromkeys(cell.column for cell in of_faults))
    rows = [
        [row, *(cell_in_words(found.get((row, column))) for column in columns)]
        for row in dict.fromkeys(one.cell.row for one in cells)
    ]
    return columns, rows


def cell_in_words(searched: Searched | None) -> str:
    """Return what a search has found: violated properties, else its number of states."""
    if searched is None:
        return ""
    if searched.explored is None:
        return "not begun"
    more = "" if searched.is_complete else "+ …"
    if not searched.violations:
        return f"{searched.states:,}{more}"
    found = ", ".join(
        name if steps is None else f"{name} ({steps})"
        for name, steps in searched.violations.items()
    )
    limit = f"{KNOWN_LIMIT}: " if searched.explored.is_allowed else ""
    return f"{limit}{found} {more}".rstrip()


def searches_in_words(battery: Battery) -> str:
    """Return how many searches were complete."""
    number = len(battery.cells)
    if battery.left_out:
        return (
            f"{number} of {counted(number + battery.left_out, 'search', 'searches')}: the first "
            "violation ended them; --all goes on"
        )
    if battery.complete == number:
        return f"{counted(number, 'search', 'searches')}, each complete"
    if battery.is_interrupted:
        return (
            f"{battery.complete} of {counted(number, 'search', 'searches')} complete; it was "
            "interrupted, and nothing is known of what the others have not seen"
        )
    return (
        f"{battery.complete} of {counted(number, 'search', 'searches')} complete; the others "
        "have more states than they show, and a larger --budget searches more of them"
    )


def took_in_words(battery: Battery) -> str:
    """Return the time, and the budget that it is a part of."""
    return f"{battery.seconds:.1f} s of {battery.budget_s:g} s"
