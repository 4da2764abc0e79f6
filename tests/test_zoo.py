"""The zoo: the search catches every plant, by the property that is stated, and no base.

`python bench/zoo.py --seeds 1000 --jobs 2 --write docs/zoo.md` writes the page anew.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, get_args

import pytest

from model import flaws
from model.planting import Plant, scenario_of
from model.variants import HARDENED, VARIANTS, Flaw, Variant
from model.zoo import PLANTS, variant_named
from scenarios import from_text
from tests.planted import shown
from watchkeeper.zoo import Caught, catch, states_of, violated_by_base
from watchkeeper.zoo_page import Row, zoo_page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "zoo.md"
LEAST = 22
"""How many plants there are at least."""


@lru_cache
def caught(name: str) -> Caught:
    """What a search of a plant has come to; each is searched once."""
    return catch(PLANTS[name])


# --- what is planted -------------------------------------------------------------------


def test_there_are_enough_and_each_is_another() -> None:
    """A flaw is planted once, and every flaw is planted."""
    switches = {(plant.base.name, *switch(plant)) for plant in PLANTS.values()}
    planted = [plant.variant.flaw for plant in PLANTS.values() if plant.variant.flaw]

    assert len(switches) == len(PLANTS) >= LEAST
    assert sorted(planted) == sorted(get_args(Flaw))


def switch(plant: Plant) -> tuple[str, Any]:
    """The one question to which a plant has another answer than its base."""
    differing = [
        (field.name, getattr(plant.variant, field.name))
        for field in fields(Variant)
        if field.name not in ("name", "about")
        if getattr(plant.variant, field.name) != getattr(plant.base, field.name)
    ]
    assert len(differing) == 1, f"{plant.name} differs in {differing}"
    return differing[0]


def test_a_variant_is_found_by_its_name() -> None:
    """Sound ones and planted ones; no name is used twice."""
    assert not PLANTS.keys() & VARIANTS.keys()
    assert variant_named("hardened") is HARDENED
    assert variant_named("lost-reply") is PLANTS["lost-reply"].variant
    assert variant_named("none") is None


@pytest.mark.parametrize("name", PLANTS)
def test_the_configuration_is_a_scenario(name: str) -> None:
    """It can be written to a file, and its bounds are read from there as they were."""
    plant = PLANTS[name]

    scenario = from_text(f"{name}.yaml", "\n".join(scenario_of(plant)))

    assert scenario.model.variant == name
    assert scenario.bounds() == plant.configuration.bounds


# --- what catches it -------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANTS)
def test_the_search_catches_it_as_stated(name: str) -> None:
    """It is caught, and by the property that its row says."""
    found = caught(name)

    assert (found.what, found.stopped) == (PLANTS[name].caught_by.name, "")
    assert found.story is not None
    assert found.story.proof


@pytest.mark.parametrize("name", PLANTS)
def test_the_base_holds_there(name: str) -> None:
    """What catches a plant says nothing of its base, in the same configuration, all of it."""
    assert violated_by_base(PLANTS[name]) == (frozenset(), "")


@pytest.mark.parametrize("name", PLANTS)
def test_reductions_hide_nothing(name: str) -> None:
    """A search that leaves nothing out comes to the same."""
    assert catch(PLANTS[name], reduces=False).what == PLANTS[name].caught_by.name


def test_the_page_says_what_was_found() -> None:
    """All of it but the seconds, and the seeds, which are counted by the bench."""
    text = PAGE.read_text()
    measured = dict(re.findall(r"^\| `([\w-]+)` .*\| ([\d.]+) \| [\d,]+ \|$", text, re.MULTILINE))
    counted = dict(re.findall(r"^\| `([\w-]+)` .*\| ([\d,]+) \|$", text, re.MULTILINE))
    seeds = re.search(r"how many of ([\d,]+) simulated", text)
    assert seeds is not None
    assert list(measured) == list(PLANTS)

    rows = [
        Row(
            plant,
            caught(name).what,
            caught(name).steps,
            caught(name).states,
            float(measured[name]),
            int(counted[name].replace(",", "")),
        )
        for name, plant in PLANTS.items()
    ]

    assert zoo_page(rows, int(seeds[1].replace(",", "")), shown()) == text


# --- what is not planted ---------------------------------------------------------------

PINNED = {
    ("kafka-228-release-first", "hardened"): 1_398,
    ("kafka-992-old-id", "documented"): 162,
    ("kafka-992-old-id", "documented_ceil"): 162,
    ("kafka-992-old-id", "kafka_07"): 256,
    ("kafka-992-old-id", "hardened"): 161,
    ("kafka-1010-no-retry", "documented"): 499,
    ("kafka-1010-no-retry", "documented_ceil"): 499,
    ("kafka-1010-no-retry", "kafka_08"): 581,
    ("kafka-1010-no-retry", "hardened"): 417,
    ("half-a-batch", "hardened"): 2_494,
    ("resumes", "hardened"): 467,
}
"""States of a sound variant in a plant's configuration, counted before there was a zoo."""


def never(*given: Any, **named: Any) -> NoReturn:
    """Stands for the code of a mistake where nobody may come."""
    raise AssertionError("a sound variant has come to the code of the zoo")


@pytest.fixture
def without_zoo(monkeypatch: pytest.MonkeyPatch) -> None:
    """All code of the zoo raises."""
    for name, function in inspect.getmembers(flaws, inspect.isfunction):
        if function.__module__ == flaws.__name__:
            monkeypatch.setattr(flaws, name, never)
    monkeypatch.setattr(flaws, "FORMS", dict.fromkeys(flaws.FORMS, never))


@pytest.mark.parametrize(("name", "variant"), PINNED)
@pytest.mark.usefixtures("without_zoo")
def test_nothing_leaks_into_a_sound_variant(name: str, variant: str) -> None:
    """It has as many states as before there was a zoo, and comes to none of its code."""
    assert VARIANTS[variant].flaw is None
    assert states_of(PLANTS[name], VARIANTS[variant]) == PINNED[name, variant]


@pytest.mark.usefixtures("without_zoo")
def test_a_plant_comes_to_the_code_of_the_zoo() -> None:
    """The check above can fail."""
    with pytest.raises(AssertionError, match="the code of the zoo"):
        catch(PLANTS["lost-reply"])
