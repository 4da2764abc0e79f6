"""The page of findings says what searches find."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs import findings
from docs.findings import CASES, MOST_STATES, ROWS, Case
from docs.findings_page import HOLDS, VIOLATED, compare

from tests import HOME
from watchkeeper.check.battery import COLUMNS, FAULTS
from watchkeeper.check.battery_report import cell_in_words
from watchkeeper.model.registry.paths import Layout

PAGE = HOME / "docs" / "findings.md"
TEXT = PAGE.read_text(encoding="utf-8")
HOLDS_TEXT = (HOME / "docs/explanation/what-hardened-holds.md").read_text(encoding="utf-8")


def table_below(text: str, heading: str) -> dict[tuple[str, str], str]:
    """The first table below a line: (row, column) -> cell."""
    below = text.split(f"\n{heading}", 1)[1].splitlines()
    first = next(at for at, line in enumerate(below) if line.startswith("|"))
    lines = []
    for line in below[first:]:
        if not line.startswith("|"):
            break
        lines.append([cell.strip() for cell in line.strip("|").split("|")])
    (_, *columns), _, *rows = lines
    return {
        (row, column): cell
        for row, *cells in rows
        for column, cell in zip(columns, cells, strict=True)
    }


def table_of(variant: str, layout: str) -> dict[tuple[str, str], str]:
    """The table of a variant: (fault, column) -> cell."""
    return table_below(TEXT, f"## `{variant}`, layout {layout}\n")


def found_in(
    variant: str, layout: Layout, row: str, column: str, most_states: int = MOST_STATES
) -> str:
    """What a search of one cell finds now."""
    [cell] = [
        cell
        for cell in findings.cells_of_variant(variant, layout)
        if (cell.row, cell.column) == (row, column)
    ]
    return cell_in_words(findings.search(cell, layout, most_states))


@pytest.mark.parametrize(("variant", "layout"), ROWS)
def test_each_variant_has_a_search_for_each_fault_in_each_column(
    variant: str, layout: str
) -> None:
    columns = [f"{begin}, messages" if messages else begin for begin, messages in COLUMNS]

    assert set(table_of(variant, layout)) == {(row, one) for row in FAULTS for one in columns}


@pytest.mark.parametrize(
    ("variant", "layout", "row", "column"),
    [
        ("documented", "0.7", "no fault", "fresh"),
        ("documented", "0.7", "partitions added", "settled"),
        pytest.param(
            *("documented_ceil", "0.7", "crash", "settled, messages"), marks=pytest.mark.slow
        ),
        ("kafka_07", "0.7", "expiry", "settled"),
        pytest.param(*("kafka_07", "0.7", "join", "settled, messages"), marks=pytest.mark.slow),
        ("kafka_08", "0.8", "lost reply", "fresh"),
        ("kafka_08", "0.8", "partitions added", "settled, messages"),
        ("hardened", "0.7", "late request", "settled, messages"),
        ("hardened", "0.8", "leave", "fresh"),
    ],
)
def test_a_cell_says_what_a_search_finds(
    variant: str, layout: Layout, row: str, column: str
) -> None:
    found = found_in(variant, layout, row, column)

    assert found == table_of(variant, layout)[row, column]


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "layout"), ROWS)
def test_a_section_is_what_its_searches_find(variant: str, layout: Layout) -> None:
    section = findings.section(findings.found_of(variant, layout, MOST_STATES))

    assert "\n".join(section).strip() in TEXT


def test_only_hardened_holds_under_every_fault_of_the_page() -> None:
    for variant, layout in ROWS:
        cells = table_of(variant, layout).values()
        holds = all(cell.partition("+")[0].replace(",", "").isdigit() for cell in cells)
        assert holds == (variant == "hardened")


def test_the_overview_counts_what_the_tables_say() -> None:
    """For each variant and property: the faults that violate it, and the complete searches."""
    overview = table_below(TEXT, "## All variants\n")
    for variant, layout in ROWS:
        table, name = table_of(variant, layout), f"`{variant}`, {layout}"
        complete = sum("+ …" not in cell for cell in table.values())
        assert overview[name, "complete searches"] == f"{complete} of {len(table)}"
        for claim in findings.PROPERTIES:
            rows = {row for (row, _), cell in table.items() if f"{claim.name} (" in cell}
            found = f"{len(rows)} of {len(FAULTS)}" if rows else "-"
            assert overview[name, claim.name] == found


def test_a_search_that_ends_before_it_has_seen_all_is_marked() -> None:
    seen = found_in("hardened", "0.7", "crash", "fresh", most_states=500)
    some = found_in("documented", "0.7", "no fault", "fresh", most_states=2_000)

    assert seen.endswith("+ …")
    assert "single ownership (31)" in some
    assert some.endswith("+ …")


# --- what hardened holds ----------------------------------------------------------------


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
def test_every_search_of_hardened_is_complete(layout: Layout) -> None:
    """Its page has the same searches with more states, and violates nothing."""
    table = table_below(HOLDS_TEXT, f"Layout {layout}: 56 searches, each complete.\n")

    assert all(cell.replace(",", "").isdigit() for cell in table.values())
    for place, cell in table_of("hardened", layout).items():
        assert cell == table[place] or cell.endswith("+ …")


LONGEST = "A consumer that waits for the end of its own registration"

# --- the cases --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow) if case.title == LONGEST else case
        for case in CASES
    ],
    ids=lambda case: case.title,
)
def test_a_case_is_as_the_page_tells_it(case: Case) -> None:
    assert "\n".join(findings.case_lines(case)).strip() in TEXT


def test_a_page_that_is_not_true_any_more_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "findings.md"
    page.write_text("one\ntwo\n")

    assert compare(page, "one\ntwo\n") == HOLDS
    assert compare(page, "one\nthree\n") == VIOLATED
    assert "-two\n+three\n" in capsys.readouterr().out
