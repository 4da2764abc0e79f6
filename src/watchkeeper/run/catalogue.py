"""The scenarios and the variants that can be run: their rows, and their tables."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from watchkeeper.api.tables import console, plain_table, show_table
from watchkeeper.scenarios.shipped_files import abouts, shipped


def scenario_rows() -> list[dict[str, Any]]:
    """Return the shipped scenarios: name, purpose, and expectation of each variant."""
    from watchkeeper.scenarios import load  # with the schema, which the table does not need

    rows = []
    for name in shipped():
        scenario = load(name)
        rows.append(
            {
                "name": name,
                "about": scenario.about,
                "expect": {
                    variant: wanted if isinstance(wanted, str) else wanted.model_dump()
                    for variant, wanted in scenario.expectations.items()
                },
            }
        )
    return rows


def variant_rows() -> list[dict[str, Any]]:
    """Return the variants, with every column of their table."""
    from watchkeeper.model.group.variants import VARIANTS  # not needed for scenarios

    return [{field: getattr(row, field) for field in row.__slots__} for row in VARIANTS.values()]


def show_scenarios() -> None:
    """List the scenarios with what they show."""
    table = plain_table("scenario", "what it shows")
    table.columns[0].no_wrap = True
    for name, about in abouts().items():
        table.add_row(Text(name, "bold"), about)
    show_table(table, console())


def show_variants(rows: list[dict[str, Any]]) -> None:
    """List the variants, a column each, a row for each question."""
    table = plain_table("", *(row["name"] for row in rows))
    for field in rows[0]:
        if field != "name":
            table.add_row(field.replace("_", " "), *(_cell(row[field]) for row in rows))
    show_table(table, console())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(
            ": ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return "as configured" if value is None else str(value)
