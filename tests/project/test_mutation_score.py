"""The mutation score: its operators, the names of mutants, what kills one, and the survivors."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from bench.mutation.catalogue import (
    MODULES,
    Module,
    Mutant,
    all_mutants,
    drawn,
    mutants_of,
    sampled,
)
from bench.mutation.child_process import EditedModule, RunsOn, in_children, within_cpu
from bench.mutation.coverage import lines_of
from bench.mutation.operators import OPERATORS, edits_of
from bench.mutation.outcome import Kill, Kind, Verdict
from bench.mutation.survivors import Explained, Explanation, explained, stale
from bench.mutation_score import LEAST_KILLED, _with_earlier, mismatches, report_of

from tests import HOME

BENCH = HOME / "bench" / "mutation_score.py"

# --- operators -------------------------------------------------------------------------

EXAMPLES = {
    "comparison": ("def f(a, b):\n    g(a < b)", ["def f(a, b):\n    g((a <= b))"]),
    "negation": ("if a and b:\n    c()", ["if (not (a and b)):\n    c()"]),
    "connective": ("x = a or b", ["x = (a and b)"]),
    "filter": ("x = [a for a in b if a]", ["x = [a for a in b]"]),
    "number": ("x = a[0]", ["x = a[1]"]),
    "flag": ("f(True)", ["f(False)"]),
    "arithmetic": ("x = a + b", ["x = (a - b)"]),
    "collection": ("x = {a: 1 for a in b}", ["x = {}"]),
    "element": ("x = (*a, b)", ["x = (b,)", "x = (*a,)"]),
    "order": ("x = sorted(a, key=b)", ["x = list((a))"]),
    "statement": (
        "a = b\na.c = b\na.c += 1\nf()",
        [
            "a = b\npass\na.c += 1\nf()",
            "a = b\na.c = b\npass\nf()",
            "a = b\na.c = b\na.c += 1\npass",
        ],
    ),
    "early return": (
        "def f(a):\n    g(a)\n    h(a)",
        ["def f(a):\n    return\n    g(a)\n    h(a)"],
    ),
    "late return": (
        "def f(a):\n    if a:\n        return 1\n    return 2",
        ["def f(a):\n    if a:\n        pass\n    return 2"],
    ),
    "handler": (
        "try:\n    f()\nexcept E:\n    g()",
        ["try:\n    f()\nexcept E:\n    raise\n    g()"],
    ),
    "loop": ("for a in b:\n    c(a)", ["for a in list((b))[:1]:\n    c(a)"]),
    "keyword": ("x = replace(a, b=1, c=2)", ["x = (replace(a, c=2))", "x = (replace(a, b=1))"]),
    "arguments": (
        "def f(a: int, b: int, c: str):\n    g(a, b, c)",
        ["def f(a: int, b: int, c: str):\n    (g(b, a, c))"],
    ),
    "step": (
        "x = V(steps=(A, B))",
        ["x = V(steps=(B,))", "x = V(steps=(A,))", "x = V(steps=(B, A))"],
    ),
}


def tidy(source: str) -> str:
    return ast.unparse(ast.parse(source))


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_makes_its_edits_and_no_other(operator: str) -> None:
    source, edited = EXAMPLES[operator]

    found = [edit.apply(source) for edit in edits_of(source, (operator,))]

    assert [tidy(text) for text in found] == [tidy(text) for text in edited]


def test_a_state_is_returned_as_it_was() -> None:
    """A function that takes a state and returns one ends early with the state unchanged."""
    source = 'def f(me: Me, state: State) -> State:\n    """Text."""\n    return g(state)'

    [edit] = edits_of(source, ("early return",))

    lines = edit.apply(source).splitlines()
    assert lines[2:] == ["    return state", "    return g(state)"]


def test_an_error_that_is_raised_again_is_handled() -> None:
    source = "try:\n    f()\nexcept E:\n    raise"

    [edit] = edits_of(source, ("handler",))

    assert edit.apply(source) == "try:\n    f()\nexcept E:\n    pass"


def test_texts_assertions_and_annotations_are_left_alone() -> None:
    source = dedent('''
        """A module."""
        from a import b

        @cache(maxsize=4)
        def f(a: Literal[1] = 2) -> Literal[3]:
            """A function."""
            raise E(f"{a == 4}")

        assert 5 == 6, "a bug"
        x = zip(a, b, strict=True)
        y = emit(a, attempt=b + 1)
    ''')

    assert edits_of(source) == []


def test_bytes_and_not_characters_are_counted() -> None:
    """A character of several bytes before an edit does not move it."""
    assert [edit.apply("f('ä', 1)") for edit in edits_of("f('ä', 1)", ("number",))] == [
        "f('ä', 2)"
    ]


@pytest.mark.parametrize("of", [drawn, pytest.param(list, marks=pytest.mark.slow)])
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_every_mutant_is_another_program(
    module: Module, of: Callable[[Iterable[Mutant]], list[Mutant]]
) -> None:
    """It can be compiled, and differs from the original in its syntax tree."""
    original = ast.dump(ast.parse(module.path.read_text()))
    mutants = list(mutants_of(module))

    assert mutants
    for mutant in of(mutants):
        source = mutant.source()
        compile(source, mutant.name, "exec")
        assert ast.dump(ast.parse(source)) != original, mutant.name


# --- names -----------------------------------------------------------------------------

SOURCE = "def f(a):\n    if a == 1:\n        g(a == 2)\n"
MORE = "import a\n\n\ndef before(a):\n    return a == 3\n\n\n"


def test_names_are_unique_and_name_functions_of_members() -> None:
    names = Counter(mutant.name for mutant in all_mutants())

    assert names.most_common(1)[0][1] == 1
    assert "group/consumer:GroupMember.turn:handler:1" in names
    assert not any(":topic_config:" in name for name in names), "only administrators call it"


def test_names_survive_other_code() -> None:
    """Lines and functions before a function do not rename its mutants."""
    before = {edit.name: edit.text for edit in edits_of(SOURCE)}
    after = {edit.name: edit.text for edit in edits_of(MORE + SOURCE)}

    assert before.items() <= after.items()
    assert [edit.line for edit in edits_of(SOURCE, ("comparison",))] == [2, 3]


def test_whether_a_mutant_is_drawn_depends_on_its_name_alone() -> None:
    mutants = all_mutants()
    chosen = drawn(mutants)

    assert drawn(mutants[::2]) == [mutant for mutant in chosen if mutant in mutants[::2]]
    assert 250 <= len(chosen) <= 600
    assert drawn(mutants, 1) == mutants


def test_a_sample_has_its_size_and_its_seed() -> None:
    mutants = all_mutants()
    first, second = sampled(mutants, 20, 0), sampled(mutants, 20, 1)

    assert len(first) == len(second) == 20
    assert first == sampled(mutants, 20, 0) != second


# --- children --------------------------------------------------------------------------


def _squared(number: int) -> int:
    if number == 3:
        raise SystemExit(1)
    return number**2


def test_each_task_has_a_child_and_one_that_ends_early_has_no_result() -> None:
    assert dict(in_children(_squared, [1, 2, 3, 4], 2)) == {1: 1, 2: 4, 3: None, 4: 16}


def test_a_loop_is_ended_though_its_handlers_take_every_exception() -> None:
    def loop() -> None:
        while True:
            with suppress(Exception):
                sum(range(100))

    with pytest.raises(RunsOn), within_cpu(0.2):
        loop()


def test_an_edited_module_is_imported_in_place_of_the_original(tmp_path: Path) -> None:
    path = tmp_path / "edited_one.py"
    path.write_text("VALUE = 1\n")

    finder = EditedModule("edited_one", path, "VALUE = 2\n")
    spec = finder.find_spec("edited_one", None)

    assert finder.find_spec("another", None) is None
    assert spec is not None
    module: Any = type(sys)("edited_one")
    finder.exec_module(module)
    assert module.VALUE == 2


def test_the_lines_that_run_are_collected(tmp_path: Path) -> None:
    path = tmp_path / "traced.py"
    path.write_text("def f(a):\n    if a:\n        return 1\n    return 2\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)

    with lines_of({str(path): "traced"}) as found:
        names["f"](True)

    assert found == {"traced": {1, 2, 3}}


# --- verdicts --------------------------------------------------------------------------

KILLABLE = "group/claims:release_lost:negation:1"
"""`if not lost: return` without the `not`: no lost partition is ever released."""
EQUIVALENT = "group/assignment:assign:loop:1"


def measured(tmp_path: Path, names: str, killers: str, code: int) -> dict[str, dict[str, Any]]:
    """Return the verdicts of the command on some mutants, by name."""
    out = tmp_path / "verdicts.json"
    command = [sys.executable, str(BENCH), "--only", names, "--killers", killers]
    done = subprocess.run(
        [*command, "--by", "simulation,search", "--json", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stderr
    return {row["mutant"]: row for row in map(json.loads, out.read_text().splitlines())}


@pytest.mark.slow
def test_a_mistake_is_killed_by_a_run_and_a_search_and_another_form_is_not(
    tmp_path: Path,
) -> None:
    """Members run one of them; only an audit runs the other, and here there is one topic."""
    killers = "^steady-join, hardened|^join, settled, hardened 0.7|^no fault, fresh, hardened 0.7"
    found = measured(tmp_path, f"{KILLABLE},{EQUIVALENT}", killers, code=1)

    killed, survivor = found[KILLABLE], found[EQUIVALENT]
    assert set(killed["kills"]) == {"simulation", "search"}
    assert all("violates" in kill["judgement"] for kill in killed["kills"].values())
    assert survivor["kills"] == {}
    assert survivor["executed_by"] == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--only=group/claim", "--only group/claim: expected a mutant, or some of group/assi"),
        ("--by=chance", "--by chance: expected some of simulation, search, tests"),
    ],
)
def test_an_option_that_is_not_understood_is_refused(option: str, message: str) -> None:
    command = [sys.executable, str(BENCH), option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert message in done.stderr


def verdict(name: str, *kinds: Kind) -> Verdict:
    kills = {kind: Kill("a run", "violates balance") for kind in kinds}
    return Verdict(name, 1, "text", "other", kills, executed_by=2)


def test_every_survivor_is_listed_unless_it_is_explained() -> None:
    mutants = all_mutants()[:4]
    first, second, third, fourth = (mutant.name for mutant in mutants)
    found = [
        verdict(first, Kind.SEARCH),
        verdict(second, Kind.TESTS),
        verdict(third),
        verdict(fourth, Kind.SIMULATION),
    ]
    entries = {
        mutant.name: Explained(mutant.name, mutant.edit.text, Explanation.EQUIVALENT, "Same.")
        for mutant in mutants[2:]
    }

    sentences = mismatches(found, entries, mutants)

    assert [sentence.partition(":")[0] for sentence in sentences] == [
        "survives, and is not explained",
        "is explained, and killed",
    ]
    assert second in sentences[0]
    assert fourth in sentences[1]


def test_the_kills_of_an_earlier_run_are_added(tmp_path: Path) -> None:
    """A verdict is read as it was written; a mutant whose line is another one now is not."""
    first, second = all_mutants()[:2]
    searched, tested = verdict(first.name, Kind.SEARCH), verdict(first.name, Kind.TESTS)
    searched = replace(searched, text=first.edit.text, differs_in=("a search",))
    moved = replace(verdict(second.name, Kind.SEARCH), text="another line")
    path = tmp_path / "earlier.json"
    path.write_text("".join(f"{json.dumps(one.to_json())}\n" for one in (searched, moved)))

    added, alone = _with_earlier([tested, verdict(second.name)], [first, second], path)

    assert Verdict.from_json(json.loads(json.dumps(searched.to_json()))) == searched
    assert added.kills.keys() == {Kind.SEARCH, Kind.TESTS}
    assert added.differs_in == ("a search",)
    assert not added.survives
    assert alone.survives


def test_the_table_counts_what_kills() -> None:
    """Equivalent mutants do not count; what only tests kill survives."""
    mutants = all_mutants([MODULES[1]])[:4]
    first, second, third, fourth = (mutant.name for mutant in mutants)
    found = [
        verdict(first, Kind.SEARCH, Kind.SIMULATION),
        verdict(second, Kind.SEARCH, Kind.TESTS),
        verdict(third),
        verdict(fourth, Kind.TESTS),
    ]
    entry = Explained(third, "text", Explanation.EQUIVALENT, "Same.")

    report = report_of(mutants, found, {third: entry})

    assert report.rows[-1] == ["all", "4", "1", "1", "2", "1", "2", "2", "1"]
    assert report.bars[0].measured.median == pytest.approx(100 * 2 / 3)
    assert report.bars[0].verdict == "NOT MET"
    assert report.bars[0].bar == LEAST_KILLED


# --- the file of survivors -------------------------------------------------------------


def test_each_explained_mutant_is_there_and_is_drawn() -> None:
    entries = explained()
    names = {mutant.name for mutant in drawn(all_mutants())}

    assert stale(entries, all_mutants()) == []
    assert entries.keys() <= names
    for entry in entries.values():
        assert len(entry.reason.split()) >= 5, f"{entry.mutant} needs a reason in a sentence"
        assert entry.reason.endswith("."), entry.mutant


def test_an_explained_mutant_that_is_gone_or_moved_is_reported() -> None:
    [first, *_] = mutants = all_mutants()
    entries = {
        name: Explained(name, line, Explanation.SURVIVOR, "No judgement is about it.")
        for name, line in ((first.name, "another line"), ("group/claims:none:flag:1", "line"))
    }

    sentences = stale(entries, mutants)

    assert len(sentences) == 2
    assert sentences[0].endswith("explain it again")
    assert sentences[1].endswith("there is no such mutant; remove the entry")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {mutant: a, line: b, verdict: fine, reason: c}", "expected equivalent or survivor"),
        ("- {mutant: a, line: b, verdict: survivor}", "expected line, mutant, reason, verdict"),
        (
            "- &row {mutant: a, line: b, verdict: survivor, reason: c}\n- *row",
            "explained twice",
        ),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "survivors.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=message):
        explained(path)
