"""The scripts of pages are typed and linted, each page's scripts as they share one page."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import HOME
from watchkeeper.reports.figure.page import SHARED_SCRIPT, without_types

REPORTS = HOME / "reports"
TOOLS = HOME / ".ci" / "scripts"
INSTALL = "npm ci --prefix .ci/scripts"
LONGEST_S = 600


def scripts_of_pages() -> dict[str, tuple[str, ...]]:
    """The scripts of each page, in their order, as its module lists them."""
    pages = sorted(path.parent.name for path in REPORTS.glob("*/html.py"))
    modules = [importlib.import_module(f"watchkeeper.reports.{page}.html") for page in pages]
    return {
        page: (SHARED_SCRIPT, *module.SCRIPTS)
        for page, module in zip(pages, modules, strict=True)
    }


SCRIPTS = scripts_of_pages()


@pytest.fixture(scope="module")
def tools() -> Path:
    """Where the compiler and the linter are."""
    programs = TOOLS / "node_modules" / ".bin"
    missing = [name for name in ("tsc", "eslint") if not (programs / name).exists()]
    if shutil.which("node") and not missing:
        return programs
    reason = f"no type checker and no linter of scripts: install Node.js 20, then run `{INSTALL}`"
    if os.environ.get("CI") == "true" and shutil.which("npm"):
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str | Path, folder: Path) -> str:
    """Run a tool; return what it finds, which is nothing where it finds no mistake."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert bool(done.stdout) == bool(done.returncode), f"{command[0]} ends with {done.returncode}"
    return done.stdout


def typed(
    tools: Path, folder: Path, scripts: Mapping[str, Sequence[str]], *, reports: Path = REPORTS
) -> str:
    """Return the mistakes that the compiler finds in the scripts of pages, as in one page each."""
    for page, names in scripts.items():
        types = [TOOLS / "types" / f"{name}.d.ts" for name in ("figure", page)]
        settings = {
            "extends": str(TOOLS / "tsconfig.json"),
            "files": [str(path) for path in (*types, *(reports / name for name in names))],
        }
        (folder / page).mkdir()
        (folder / page / "tsconfig.json").write_text(json.dumps(settings))
    return run(tools / "tsc", "--build", "--pretty", "false", *scripts, folder=folder)


def linted(tools: Path, reports: Path) -> str:
    """Return the mistakes that the linter finds in all scripts of a folder."""
    config = TOOLS / "eslint.config.js"
    return run(tools / "eslint", "--config", config, "--max-warnings", "0", ".", folder=reports)


def test_every_script_is_of_a_page() -> None:
    """A script that no page lists would be neither drawn nor checked."""
    listed = {name for names in SCRIPTS.values() for name in names}

    assert listed == {path.relative_to(REPORTS).as_posix() for path in REPORTS.rglob("*.js")}


def test_the_types_of_scripts_fit(tools: Path, tmp_path: Path) -> None:
    """Names, properties, nulls and arguments, over all scripts that share a page."""
    assert typed(tools, tmp_path, SCRIPTS) == ""


def test_scripts_are_linted(tools: Path) -> None:
    """The recommended rules, as `.ci/scripts/eslint.config.js` has them."""
    assert linted(tools, REPORTS) == ""


MISTAKES = [
    ("figure/page.js", 'element("stage")', 'document.getElementById("stage")', "'stage' is poss"),
    ("messages/messages.js", "data.charts.map(", "data.chart.map(", "Property 'chart' does not"),
    ("messages/messages.js", "dragged !== null && Math", "Math", "'dragged' is possibly 'null'"),
    ("messages/messages.js", "isPrinted = isBegun;", "isPrintd = isBegun;", "name 'isPrintd'"),
    (
        "messages/messages.js",
        "fitPaper(svg, PAPER, 0,",
        "fitPaper(svg, 0,",
        "Expected 4 arguments",
    ),
]
"""A script, what it says, a mistake in its place, and what the compiler says to that."""


@pytest.mark.parametrize(("name", "right", "wrong", "finding"), MISTAKES)
def test_a_mistake_is_found(
    tools: Path, tmp_path: Path, name: str, right: str, wrong: str, finding: str
) -> None:
    """A misspelt name, a null that is not checked, a missing argument."""
    reports = tmp_path / "reports"
    page = {"messages": SCRIPTS["messages"]}
    for script in page["messages"]:
        (reports / script).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPORTS / script, reports / script)
    text = (reports / name).read_text()
    assert text.count(right) == 1
    (reports / name).write_text(text.replace(right, wrong))

    assert finding in typed(tools, tmp_path, page, reports=reports)


def test_a_careless_line_is_found(tools: Path, tmp_path: Path) -> None:
    """The linter sees what has a type but no sense; its settings are found without a search."""
    (tmp_path / "eslint.config.js").symlink_to(TOOLS / "eslint.config.js")
    (tmp_path / "careless.js").write_text("var a = 1;\nif (a == 1) a = a;\n")

    found = run(tools / "eslint", ".", folder=tmp_path)

    assert [rule for rule in ("no-var", "eqeqeq", "no-self-assign") if rule not in found] == []


def test_pages_have_no_types() -> None:
    """Comments for the type checker stay out of pages; all else is in them."""
    script = (
        "// a sentence\n/** @type {number} */\nlet a = 1;\n/**\n * @param {string} b\n */\n"
        'function f(b) {\n  /** @type {string} */\n  const c = "/** no comment */";\n}\n'
    )

    assert without_types(script) == (
        '// a sentence\nlet a = 1;\nfunction f(b) {\n  const c = "/** no comment */";\n}\n'
    )


def test_the_lock_file_names_no_host() -> None:
    """It is read with whichever registry a machine has."""
    assert "://" not in (TOOLS / "package-lock.json").read_text()
