"""The programs on kazoo's recipes: they hold without faults, and find what the page says."""

from __future__ import annotations

import pytest
from bench.support.wrong_recipes import MISTAKES, Mistake, copy_of
from bench.wrong_recipes import catch
from docs.recipes.causes import CAUSES
from docs.recipes.cells import FAULTS, run_cell
from docs.recipes.programs import PROGRAMS

from tests import HOME

PAGE = (HOME / "docs/kazoo-recipes.md").read_text()


@pytest.mark.parametrize("recipe", PROGRAMS)
def test_a_recipe_holds_without_faults(recipe: str) -> None:
    """Every property is exercised, and none is violated, in any order of threads tried."""
    cell = run_cell(recipe, "none", range(5))

    assert cell.verdicts == {"holds": 5}


FOUND = {
    ("Counter", "lost reply"): "counted",
    ("Queue", "lost reply"): "elements of queue",
    ("retry", "lost reply"): "counted",
    ("DoubleBarrier", "disconnect"): "all leave",
    ("Party", "expiry"): "the party is complete",
    ("Barrier", "lagging follower"): "assertions",
}


@pytest.mark.parametrize(("recipe", "fault"), FOUND)
def test_what_the_page_says_is_found_again(recipe: str, fault: str) -> None:
    """The first seed that the page names violates the property."""
    name = FOUND[recipe, fault]
    cell = run_cell(recipe, fault, range(120 if recipe == "Queue" else 40))

    assert name in cell.violated
    assert f"### {recipe}: {name}" in PAGE


def test_the_page_has_every_recipe_and_every_fault() -> None:
    """A row for each recipe, a column for each kind of fault, a cause for what is violated."""
    rows = {line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")}

    assert {*PROGRAMS} <= rows
    assert all(fault in PAGE for fault in FAULTS)
    assert all(f"### {recipe}: " in PAGE for recipe, _ in CAUSES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_in_a_recipe_is_caught(mistake: Mistake) -> None:
    """By chance, within some seeds; the recipe as it is holds with the same seed."""
    assert catch(mistake, "random", 100) is not None


def test_a_mistake_that_does_not_fit_is_an_error() -> None:
    """A kazoo whose recipe has changed is no recipe with a mistake."""
    wrong = Mistake("none", "Lock", "kazoo.recipe.lock", "no such line", "", "Lock")

    with pytest.raises(LookupError, match="0 times"):
        copy_of(wrong)
