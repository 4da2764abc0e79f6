"""The scripts of pages are typed and linted, each page's scripts as they share one page."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import HOME
from tests.support.checker.clusters import small
from watchkeeper import simulate
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.explorer.explorer import Explorer
from watchkeeper.cli.main import run_command
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.reports.explorer import html as explorer
from watchkeeper.reports.explorer.html import GivenPath
from watchkeeper.reports.figure.page import SHARED_SCRIPT, without_types
from watchkeeper.reports.messages import html as messages
from watchkeeper.reports.messages.message_path import message_path
from watchkeeper.reports.ownership import html as ownership
from watchkeeper.reports.ownership.ownership import board
from watchkeeper.reports.spacetime import html as spacetime
from watchkeeper.reports.spacetime.items import items

REPORTS = HOME / "reports"
TOOLS = HOME / ".ci" / "scripts"
INSTALL = "npm ci --prefix .ci/scripts"
PARTLY_ANNOTATED = {"explorer", "ownership"}
"""Pages with parameters that have no type of their own; their scripts are strict in all else."""
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
    if os.environ.get("WATCHKEEPER_SCRIPTS") == "checked":  # `.ci/run` has installed them
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
    """Return the mistakes that the compiler finds in the scripts of pages."""
    files = {page: [reports / name for name in names] for page, names in scripts.items()}
    return compiled(tools, folder, files)


def compiled(tools: Path, folder: Path, files: Mapping[str, Sequence[Path]]) -> str:
    """Return the mistakes in files that share a page and its types; one call for all pages."""
    for page, paths in files.items():
        types = [TOOLS / "types" / f"{name}.d.ts" for name in ("figure", page)]
        settings = {
            "extends": str(TOOLS / "tsconfig.json"),
            "compilerOptions": {"noImplicitAny": page not in PARTLY_ANNOTATED},
            "files": [str(path) for path in (*types, *paths)],
        }
        (folder / page).mkdir(exist_ok=True)
        (folder / page / "tsconfig.json").write_text(json.dumps(settings))
    return run(tools / "tsc", "--build", "--pretty", "false", *files, folder=folder)


def linted(tools: Path, reports: Path) -> str:
    """Return the mistakes that the linter finds in all scripts of a folder."""
    config = TOOLS / "eslint.config.js"
    return run(tools / "eslint", "--config", config, "--max-warnings", "0", ".", folder=reports)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Python writes into each page, of short runs with violations."""
    folder = tmp_path_factory.mktemp("written")
    sweep = ["session-expiry", "--seeds", "0..3", "--variants", "hardened,stale-memory"]
    run_command(["sweep", *sweep, "--no-shrink", "--out", str(folder / "sweep")])
    run_command(["analyze", str(folder / "sweep"), "--out", str(folder / "analysis")])
    expired = simulate("session-expiry", variant="stale-memory", seed=0).trace
    unflushed = simulate("broker-crash-unflushed", seed=0).trace
    run_command(["explore-replicas", "--fault", "unclean", "--out", str(folder / "replicas")])
    [replicas] = (folder / "replicas").rglob("counterexample.html")
    bounds = Bounds({"join": 1}, begin="settled")
    states = Explorer(ClusterSystem(small("documented", partitions=1), bounds)).graph(500)
    given = GivenPath((0,), "full cover is violated", "nothing fetches", 1, (1, 1))
    return {
        "analysis": data_in(folder / "analysis" / "analyze.html"),
        "explorer": explorer.page_data(
            ("billing/0", "broker/0"), {"full cover": given}, states, opens="full cover"
        ),
        "messages": messages.page_data(message_path(unflushed)),
        "ownership": ownership.board_data(board(expired)),
        "replicas": data_in(replicas),
        "spacetime": spacetime.diagram_data(expired, items(expired)) | {"breaches": [1]},
        "sweep": data_in(folder / "sweep" / "sweep.html"),
    }


def data_in(page: Path) -> Any:
    """The data in a page."""
    return json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])


def test_every_script_is_of_a_page() -> None:
    """A script that no page lists would be neither drawn nor checked."""
    listed = {name for names in SCRIPTS.values() for name in names}

    assert listed == {path.relative_to(REPORTS).as_posix() for path in REPORTS.rglob("*.js")}


def test_the_types_of_scripts_fit(tools: Path, tmp_path: Path) -> None:
    """Names, properties, nulls and arguments, over all scripts that share a page."""
    assert typed(tools, tmp_path, SCRIPTS) == ""


def test_python_writes_what_scripts_read(
    tools: Path, tmp_path: Path, written: dict[str, Any]
) -> None:
    """The data of each page is of the type that its scripts are checked with."""
    assert set(written) == set(SCRIPTS)
    assert compiled(tools, tmp_path, as_programs(written, tmp_path)) == ""


def test_a_value_of_another_type_is_found(
    tools: Path, tmp_path: Path, written: dict[str, Any]
) -> None:
    """A field that Python renames, and one that may be null from now on."""
    renamed = {name: value for name, value in written["ownership"].items() if name != "end"}
    changed = {"ownership": renamed | {"ended": 1}, "sweep": written["sweep"] | {"runs": None}}

    found = compiled(tools, tmp_path, as_programs(changed, tmp_path))

    assert "'\"ended\"' does not exist" in found
    assert "'null' is not assignable to type 'number'" in found


def as_programs(written: Mapping[str, Any], folder: Path) -> dict[str, list[Path]]:
    """Files that declare the data of pages to be of its type."""
    for page, data in written.items():
        text = msgspec.json.encode(data).decode()
        (folder / f"{page}.ts").write_text(f"const written: PageData = {text};\n")
    return {page: [folder / f"{page}.ts"] for page in written}


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


def test_mistakes_are_found(tools: Path, tmp_path: Path) -> None:
    """A misspelt name, a null that is not checked, a missing argument."""
    page = {"messages": SCRIPTS["messages"]}
    for script in page["messages"]:
        text = (REPORTS / script).read_text()
        for name, right, wrong, _ in MISTAKES:
            assert name != script or text.count(right) == 1
            text = text.replace(right, wrong) if name == script else text
        (tmp_path / "reports" / script).parent.mkdir(parents=True)
        (tmp_path / "reports" / script).write_text(text)

    found = typed(tools, tmp_path, page, reports=tmp_path / "reports")

    assert [finding for *_, finding in MISTAKES if finding not in found] == []


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
