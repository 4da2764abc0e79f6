"""The page of findings says what searches find."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.bounds import Bounds
from watchkeeper import findings
from watchkeeper.endings import HOLDS, VIOLATED
from watchkeeper.findings import CASES, FAULTS, ROWS, Case, Cluster, plan_of
from watchkeeper.findings_page import compare

PAGE = Path(__file__).resolve().parent.parent / "docs" / "findings.md"
TEXT = PAGE.read_text(encoding="utf-8")


def cells_of(variant: str, layout: str) -> dict[str, str]:
    """A row of the page's table, by fault."""
    [row] = [line for line in TEXT.splitlines() if line.startswith(f"| `{variant}`, {layout} |")]
    return dict(zip(FAULTS, [cell.strip() for cell in row.split("|")[2:-1]], strict=True))


@pytest.mark.parametrize(
    ("variant", "layout", "fault"),
    [
        ("documented", "0.7", "none"),
        ("documented_ceil", "0.7", "crash and restart"),
        ("kafka_07", "0.7", "none"),
        ("kafka_08", "0.8", "none"),
        ("hardened", "0.7", "lost reply"),
        ("hardened", "0.8", "join and leave"),
    ],
)
def test_a_cell_says_what_a_search_finds(variant: str, layout: str, fault: str) -> None:
    plan = plan_of(variant, layout, Cluster())  # type: ignore[arg-type]

    found = findings.cell_of(findings.search(plan, Bounds(FAULTS[fault])))

    assert found == cells_of(variant, layout)[fault]


def test_hardened_holds_under_every_fault_of_the_page() -> None:
    for variant, layout in ROWS:
        cells = cells_of(variant, layout)
        holds = all(cell.startswith("holds") for cell in cells.values())
        assert holds == (variant == "hardened")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_case_is_as_the_page_tells_it(case: Case) -> None:
    assert "\n".join(findings.case_lines(case)).strip() in TEXT


def test_a_page_that_is_not_true_any_more_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "findings.md"
    page.write_text("one\ntwo\n")

    assert compare(page, "one\ntwo\n") == HOLDS
    assert compare(page, "one\nthree\n") == VIOLATED
    assert "-two\n+three\n" in capsys.readouterr().out
