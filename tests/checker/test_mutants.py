"""Mutants: the search catches each, by the property that is stated, and no base.

`python bench/mutants.py --seeds 1000 --jobs 2 --write docs/mutants.md` writes the page anew.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from functools import lru_cache
from typing import Any, NoReturn

import pytest
from bench.support.mutant_search import Caught, catch, states_of, violated_by_base
from docs.mutants_page import Row, mutants_page

from tests import HOME
from tests.support.messages.mutant_runs import shown
from watchkeeper.model.group.consumer import SHIPPED
from watchkeeper.model.group.variants import HARDENED, VARIANTS, Variant
from watchkeeper.model.mutants import members, requests, steps
from watchkeeper.model.mutants.by_name import member_of, variant_named
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.mutants.mutant import Mutant, scenario_of
from watchkeeper.model.mutants.mutation import Mutation
from watchkeeper.scenarios import from_text

PAGE = HOME / "docs" / "mutants.md"
LEAST = 22
"""The least number of mutants."""


@lru_cache
def caught(name: str) -> Caught:
    """Return the result of the search of a mutant; each is searched once."""
    return catch(MUTANTS[name])


# --- the catalogue ---------------------------------------------------------------------


def test_there_are_enough_and_each_is_another() -> None:
    """Each mutation has one mutant, and each mutant another answer or mutation."""
    switches = {(mutant.base.name, *switch(mutant)) for mutant in MUTANTS.values()}
    mutations = [mutant.mutation for mutant in MUTANTS.values() if mutant.mutation]

    assert len(switches) == len(MUTANTS) >= LEAST
    assert sorted(mutations) == sorted(Mutation) == sorted(members.MEMBERS)


def switch(mutant: Mutant) -> tuple[str, Any]:
    """Return the mutation of a mutant, or the one answer that differs from its base."""
    differing = [
        (field.name, getattr(mutant.variant, field.name))
        for field in fields(Variant)
        if field.name not in ("name", "about", "layouts")
        if getattr(mutant.variant, field.name) != getattr(mutant.base, field.name)
    ]
    if mutant.mutation is not None:
        differing.append(("mutation", mutant.mutation))
    assert len(differing) == 1, f"{mutant.name} differs in {differing}"
    return differing[0]


def test_a_variant_is_found_by_its_name() -> None:
    """Sound variants and mutants; no name is used twice."""
    assert not MUTANTS.keys() & VARIANTS.keys()
    assert variant_named("hardened") is HARDENED
    assert variant_named("lost-reply") is MUTANTS["lost-reply"].variant
    assert variant_named("none") is None


@pytest.mark.parametrize("name", MUTANTS)
def test_the_configuration_is_a_scenario(name: str) -> None:
    """It can be written to a file, and its bounds are read from there as they were."""
    mutant = MUTANTS[name]

    scenario = from_text(f"{name}.yaml", "\n".join(scenario_of(mutant)))

    assert scenario.model.variant == name
    assert scenario.bounds() == mutant.configuration.bounds


# --- what catches it -------------------------------------------------------------------


@pytest.mark.parametrize("name", MUTANTS)
def test_the_search_catches_it_as_stated(name: str) -> None:
    """It is caught, and by the property that its row says."""
    found = caught(name)

    assert (found.what, found.stopped) == (MUTANTS[name].caught_by.name, "")
    assert found.counterexample is not None
    assert found.counterexample.proof


@pytest.mark.parametrize("name", MUTANTS)
def test_the_base_holds_there(name: str) -> None:
    """The base violates nothing in the mutant's configuration, searched completely."""
    assert violated_by_base(MUTANTS[name]) == (frozenset(), "")


QUICK = frozenset(
    {
        *("kafka-969-no-brokers", "adopts-by-name", "no-fence"),
        *("claims-lost-on-error", "claims-by-place", "resumes"),
    }
)
"""For each property the mutant whose unreduced search is the shortest, or nearly so."""


def test_each_property_has_a_quick_search() -> None:
    """Each property that catches a mutant catches one of the quick ones."""
    properties = {mutant.caught_by.name for mutant in MUTANTS.values()}

    assert {MUTANTS[name].caught_by.name for name in QUICK} == properties
    assert len(QUICK) == len(properties)


@pytest.mark.parametrize(
    "name",
    [
        mutant if mutant in QUICK else pytest.param(mutant, marks=pytest.mark.slow)
        for mutant in MUTANTS
    ],
)
def test_reductions_hide_nothing(name: str) -> None:
    """A search that leaves nothing out comes to the same."""
    assert catch(MUTANTS[name], reduces=False).what == MUTANTS[name].caught_by.name


def test_the_page_says_what_was_found() -> None:
    """All of it but the seconds, and the seeds, which are counted by the bench."""
    text = PAGE.read_text()
    measured = dict(re.findall(r"^\| `([\w-]+)` .*\| ([\d.]+) \| [\d,]+ \|$", text, re.MULTILINE))
    counted = dict(re.findall(r"^\| `([\w-]+)` .*\| ([\d,]+) \|$", text, re.MULTILINE))
    seeds = re.search(r"out of ([\d,]+), that catch", text)
    assert seeds is not None
    assert list(measured) == list(MUTANTS)

    rows = [
        Row(
            mutant,
            caught(name).what,
            caught(name).steps,
            caught(name).states,
            float(measured[name]),
            int(counted[name].replace(",", "")),
        )
        for name, mutant in MUTANTS.items()
    ]

    assert mutants_page(rows, int(seeds[1].replace(",", "")), shown()) == text


# --- sound variants --------------------------------------------------------------------

PINNED = {
    ("kafka-228-release-first", "hardened"): 1_169,
    ("kafka-992-old-id", "documented"): 162,
    ("kafka-992-old-id", "documented_ceil"): 162,
    ("kafka-992-old-id", "kafka_07"): 256,
    ("kafka-992-old-id", "hardened"): 159,
    ("kafka-1010-no-retry", "documented"): 499,
    ("kafka-1010-no-retry", "documented_ceil"): 499,
    ("kafka-1010-no-retry", "kafka_08"): 581,
    ("kafka-1010-no-retry", "hardened"): 351,
    ("half-a-batch", "hardened"): 2_494,
    ("resumes", "hardened"): 471,
}
"""States of a sound variant in a mutant's configuration, counted without any mutated code."""


def never(*given: Any, **named: Any) -> NoReturn:
    """Stands for mutated code that must not run."""
    raise AssertionError("a sound variant has run mutated code")


@pytest.fixture
def no_mutated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """All mutated code raises."""
    for module in (steps, requests, members):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__:
                monkeypatch.setattr(module, name, never)
    for way in (*mutated_classes(requests), *mutated_classes(members)):
        for name, _ in inspect.getmembers(way, inspect.isfunction):
            if name in vars(way):
                monkeypatch.setattr(way, name, never)
        if "steps" in vars(way):
            monkeypatch.setattr(way, "steps", dict.fromkeys(way.steps, never))


def mutated_classes(module: Any) -> list[Any]:
    """The classes that a module defines."""
    found = inspect.getmembers(module, inspect.isclass)
    return [item for _, item in found if item.__module__ == module.__name__]


@pytest.mark.parametrize(("name", "variant"), PINNED)
@pytest.mark.usefixtures("no_mutated_code")
def test_nothing_leaks_into_a_sound_variant(name: str, variant: str) -> None:
    """It has as many states as without them, and runs none of their code."""
    assert member_of(VARIANTS[variant]) is SHIPPED
    assert states_of(MUTANTS[name], VARIANTS[variant]) == PINNED[name, variant]


@pytest.mark.usefixtures("no_mutated_code")
@pytest.mark.parametrize("name", ["lost-reply", "half-a-batch", "kafka-154-old-position"])
def test_a_mutant_runs_mutated_code(name: str) -> None:
    """The check above can fail."""
    with pytest.raises(AssertionError, match="mutated code"):
        catch(MUTANTS[name])


def test_the_shipped_protocol_names_no_mutation() -> None:
    """What runs in applications knows nothing of mutants."""
    folders = [HOME / "model" / name for name in ("actor", "broker", "group", "registry")]
    texts = {path: path.read_text() for folder in folders for path in folder.rglob("*.py")}

    assert len(texts) > 25
    assert [module for module, text in texts.items() if re.search(r"(?i)mutant", text)] == []
