"""What the pages show is what happens: commands, output, programs, scenarios, links.

`pytest tests/project/test_docs.py --rewrite-golden` takes new output over into the pages; review
what changes as a diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests import HOME
from tests.support.pages.markdown import blocks, broken_links, pages
from tests.support.pages.session import INSTALLS, commands_of, played
from watchkeeper import simulate
from watchkeeper.scenarios import ScenarioError, from_text

GENERATED = "<!-- made by docs/generate.py"
PAGES = pages()
WRITTEN = [name for name in PAGES if GENERATED not in (HOME / name).read_text()]
"""The pages that a person has written."""

LONG = (
    "docs/how-to/activity.md",
    "docs/how-to/continuous-integration.md",
    "docs/how-to/explore.md",
    "docs/how-to/explore-your-own.md",
    "docs/how-to/explore-replicas.md",
    "docs/how-to/keep-offsets-in-kafka.md",
    "docs/how-to/load-from-brokers.md",
    "docs/how-to/load-logs.md",
    "docs/how-to/own-consumer.md",
    "docs/how-to/property-tests.md",
    "docs/how-to/sweep.md",
    "docs/how-to/test-a-lock-a-queue-a-service.md",
    "docs/how-to/test-kazoo-code.md",
)
"""Pages whose commands take a quarter of a minute and more."""
SHOWING = [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in WRITTEN
]

KINDS = ("tutorial.md", "how-to/", "reference/", "explanation/")


def text_of(name: str) -> str:
    """What a page says."""
    return (HOME / name).read_text()


# --- what is shown is run --------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWING)
def test_what_is_shown_is_what_happens(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every command gives the output shown below it, and every program runs."""
    folder = tmp_path / "reader"
    folder.mkdir()
    wrong, renewed = played(text_of(name), folder)
    if request.config.getoption("--rewrite-golden") and renewed != text_of(name):
        (HOME / name).write_text(renewed)
        pytest.skip("written anew; run it again")
    assert not wrong, f"{name}\n" + "\n\n".join(wrong)


def test_only_the_readme_installs() -> None:
    """What installs is not run here; `test_readme` runs the README's two commands."""
    installing = [
        name
        for name in WRITTEN
        for block in blocks(text_of(name))
        for step in commands_of(block)
        if INSTALLS in step.command
    ]
    assert installing == ["README.md", "README.md"]


WRONG_PAGES = {
    "a word of the output": "```console\n$ watchkeeper --version\nwatchkeeper 0.1.x\n```\n",
    "a failure that is not announced": "```console\n$ ls /none 2> /dev/null\n```\n",
    "a path of this machine": "```console\n$ pwd\n...\n```\n",
    "an exit code": "```console\n$ watchkeeper --version > /dev/null\n$ echo $?\n1\n```\n",
    "what follows a part left out": "```console\n$ watchkeeper --version\n...\nand more\n```\n",
    "a command that fails": "```sh\nwatchkeeper run no-such-scenario\n```\n",
    "a program that fails": "```python\nimport watchkeeper\nwatchkeeper.simulate('none')\n```\n",
    "a test that fails": "```python\ndef test_it() -> None:\n    assert 1 == 2\n```\n",
}


@pytest.mark.parametrize("what", WRONG_PAGES)
def test_an_error_in_a_page_is_found(what: str, tmp_path: Path) -> None:
    """The check above can fail."""
    folder = tmp_path / "reader"
    folder.mkdir()
    wrong, _ = played(WRONG_PAGES[what], folder)
    assert len(wrong) == 1


def test_output_is_taken_over(tmp_path: Path) -> None:
    """Output is rewritten where it stands, and what was left out stays left out."""
    folder = tmp_path / "reader"
    folder.mkdir()
    page = (
        "before\n\n```console\n$ printf 'one\\ntwo\\nthree\\nfour\\nfive\\n'\none\n...\nthre\n"
        "...\nfife\n$ echo 2\n```\n\nafter\n"
    )
    wrong, renewed = played(page, folder)
    assert len(wrong) == 2
    shown = "\none\n...\nthree\n...\nfive\n$ echo 2\n2\n```\n\nafter\n"
    assert renewed.endswith(shown)
    again = tmp_path / "again"
    again.mkdir()
    assert played(renewed, again) == ([], renewed)


# --- scenarios -------------------------------------------------------------------------

AROUND = "scenarios/files/consumer-crash.yaml"
"""The scenario into which a fragment of one is put, to see whether it fits."""

OF_OTHERS = {"jobs", "repos"}
"""Fields of a job of a service that runs tests, and of hooks before a commit: no scenarios."""


def scenario_problems(text: str) -> Iterator[str]:
    """What is wrong with the scenarios of a page, and with what is part of one."""
    for block in blocks(text):
        if block.language != "yaml":
            continue
        fields: Any = yaml.safe_load(block.text)
        if isinstance(fields, dict) and OF_OTHERS & fields.keys():
            continue
        problem = refusal(block.text, fields)
        if block.is_wrong and problem is None:
            yield f"line {block.line}: this scenario ought to be wrong"
        elif not block.is_wrong and problem is not None:
            yield f"line {block.line}: {problem}"


def refusal(text: str, fields: Any) -> str | None:
    """Why a scenario is refused; None if it is not."""
    whole = text
    if isinstance(fields, list) or "clusters" not in fields:
        part = text
        if isinstance(fields, list):
            part = f"timeline:\n{indent(text, '  ')}"
        replaced = {"sometimes", *(["timeline"] if isinstance(fields, list) else fields)}
        around = yaml.safe_load(text_of(AROUND))
        kept = {key: value for key, value in around.items() if key not in replaced}
        whole = f"{yaml.safe_dump(kept)}{part}"
    try:
        from_text("shown.yaml", whole).plan()
    except ScenarioError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", WRITTEN)
def test_every_scenario_shown_is_valid(name: str) -> None:
    """Whole scenarios load; a part of one fits into another."""
    assert list(scenario_problems(text_of(name))) == []


@pytest.mark.parametrize(
    "shown",
    [
        "```yaml\nname: one\n```\n".replace("one", "'two words'"),
        "```yaml\n- {at: 5s, crush: billing/1}\n```\n",
        "<!-- file: right.yaml, wrong -->\n```yaml\n- {at: 5s, crash: billing/1}\n```\n",
    ],
)
def test_a_wrong_scenario_is_found(shown: str) -> None:
    """The check above can fail."""
    assert len(list(scenario_problems(shown))) == 1


# --- links -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """To a file that is there, to a heading that it has."""
    assert broken_links(HOME / name, text_of(name)) == []


@pytest.mark.parametrize("link", ["docs/none.md", "#none", "docs/README.md#none"])
def test_a_broken_link_is_found(link: str) -> None:
    """The check above can fail."""
    assert len(broken_links(HOME / "README.md", f"# One\n\n[a link]({link})\n")) == 1


def test_the_index_knows_every_page() -> None:
    """docs/README.md leads to each page of docs, under the kind it is of."""
    index = text_of("docs/README.md")
    missing = [
        name
        for name in PAGES
        if name.startswith("docs/") and name != "docs/README.md"
        if f"({name.removeprefix('docs/')})" not in index
    ]
    assert missing == []
    places = [index.index(f"({kind}") for kind in KINDS]
    assert places == sorted(places)


# --- generated pages -------------------------------------------------------------------


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The program that writes the generated pages."""
    return import_module("docs.generate")


CHEAP = [name for name in PAGES if name not in WRITTEN and name.startswith("docs/reference/")]


def test_every_generated_page_is_known(generator: ModuleType) -> None:
    """What says that it is generated is generated."""
    made = {f"docs/{name}" for name in generator.PAGES}
    assert made == set(PAGES) - set(WRITTEN)


@pytest.mark.parametrize("name", CHEAP)
def test_generated_pages_are_fresh(
    name: str, generator: ModuleType, request: pytest.FixtureRequest
) -> None:
    """They say what the code says."""
    made = generator.PAGES[name.removeprefix("docs/")]()
    if request.config.getoption("--rewrite-golden"):
        (HOME / name).write_text(made)
    assert text_of(name) == made, "stale; run python docs/generate.py"


def test_a_stale_page_is_found(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--check` says so, and ends with 1."""
    cheap = {name: generator.PAGES[name] for name in ("reference/properties.md",)}
    monkeypatch.setattr(generator, "PAGES", cheap)
    monkeypatch.setattr(generator, "HOME", tmp_path)
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    page = tmp_path / "reference" / "properties.md"
    page.write_text(page.read_text().replace("**balance**", "**justice**"))
    assert generator.main(["--check"]) == 1


# --- what hardened holds ---------------------------------------------------------------

HOLDS_PAGE = "docs/explanation/what-hardened-holds.md"


def table_of(text: str) -> dict[str, dict[str, str]]:
    """Fault -> property -> what the page says of it."""
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and "---" not in line
    ]
    head, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def contradictions(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Where runs have shown less than the page says."""
    return [
        f"{name} is {verdict}, and the page says it holds"
        for name, verdict in found.items()
        if verdict != "holds" and expected.get(name) == "holds"
    ]


@pytest.fixture(scope="module")
def hardened() -> Any:
    """The program that makes the table."""
    return import_module("docs.hardened")


SHOWN = table_of(text_of(HOLDS_PAGE).partition("\n## ")[0])


def test_the_table_has_every_fault_and_every_property(hardened: Any) -> None:
    """A fault that is added has to be run, and a property that is added to be judged."""
    assert list(SHOWN) == list(hardened.FAULTS)
    names = {claim.name for claim in hardened.PROPERTIES}
    assert all(set(row) == names for row in SHOWN.values())
    assert hardened.verbs_without_a_row() == set()


@pytest.mark.parametrize("name", SHOWN)
def test_a_few_runs_do_not_contradict_the_table(name: str, hardened: Any) -> None:
    """The page is made of more runs; one in each layout, with a seed of its own, agrees."""
    found = hardened.verdicts(name, seeds=(1,))
    assert contradictions(SHOWN[name], found) == []


def test_a_contradiction_is_found(hardened: Any) -> None:
    """The check above can fail: what is not hardened does not hold all that."""
    name = "a session expires and its client learns of it at once"
    result = simulate(hardened.scenario(hardened.FAULTS[name], "0.7"), variant="kafka_07")
    found = {finding.claim.name: finding.verdict.value for finding in result.findings}
    assert len(contradictions(SHOWN[name], found)) > 0
