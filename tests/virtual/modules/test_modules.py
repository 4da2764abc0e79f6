"""Preemption between statements, and modules of a process's own."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from watchkeeper.virtual.modules.own_modules import OwnModules
from watchkeeper.virtual.modules.preemption import SWITCH_POINT, preempted_code
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.world import World, WorldSettings

COUNTER = '''
"""A counter without a lock."""
import threading
from dataclasses import dataclass

from . import parts
from .parts import STEP
import {package}.parts as again

value = 0

@dataclass
class Result:
    """What was counted."""
    value: int

def count(world, results):
    """Count in two threads."""
    def add():
        """Add one, in two statements."""
        global value
        before = value
        value = before + STEP
    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts.calls += 1
    assert again is parts
    results.append(Result(value).value)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of two modules that can be imported; its name."""
    name = f"package_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "counter.py").write_text(COUNTER.format(package=name))
    (folder / "parts.py").write_text("STEP = 1\ncalls = 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for each in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[each]


def counted(package: str, seeds: int, **settings: Any) -> set[tuple[int, ...]]:
    """The results of two processes, in some runs."""
    from importlib import import_module

    counter: Any = import_module(f"{package}.counter")
    found = set()
    for seed in range(seeds):
        counter.value = 0
        results: list[int] = []

        def test(world: World, results: list[int] = results) -> None:
            for name in "ab":
                world.process(name, counter.count, world, results)

        outcome = run_once(
            Case("count", test, WorldSettings(until_s=5, **settings)),
            RandomPolicy(seed),
            "random",
            seed=seed,
        )
        assert not outcome.deaths, outcome.tracebacks
        found.add(tuple(results))
    return found


def test_processes_share_the_variables_of_a_module(package: str) -> None:
    """Without a copy, two processes count in one variable, and no update is lost."""
    assert {results[-1] for results in counted(package, 5)} == {4}


def test_each_process_has_its_own_copy(package: str) -> None:
    """With copies, each of them counts for itself; `sys.modules` is as it was."""
    before = dict(sys.modules)
    found = counted(package, 5, modules=(package,))

    assert found == {(2, 2)}
    assert all(sys.modules[name] is module for name, module in before.items())
    assert sys.modules[f"{package}.parts"].calls == 0


def test_preemption_finds_a_lost_update(package: str) -> None:
    """Between the two statements another thread adds, in some of the runs."""
    found = counted(package, 60, modules=(package,), preempt=(package,))

    assert (2, 2) in found
    assert found & {(1, 2), (2, 1), (1, 1)}


SHAPES = '''
"""A module with every kind of block."""
from __future__ import annotations

async def coroutine(items):
    """Has a docstring."""
    async for item in items:
        yield item

def shapes(n):
    global seen
    seen = []
    for each in range(n):
        if each % 2:
            continue
        elif each > 4:
            break
        else:
            seen.append(each)
    else:
        seen.append("else")
    while n:
        n -= 1
    with open(__file__) as file:
        seen.append(len(file.readline()))
    try:
        raise ValueError("x")
    except ValueError as error:
        seen.append(str(error))
    finally:
        seen.append("finally")
    match n:
        case 0:
            seen.append("zero")
        case _:
            pass
    def inner():
        nonlocal n
        n += 1
        yield n
    class Local:
        """Has a docstring."""
        value = [x for x in range(2)]
        def method(self):
            return self.value
    return seen, list(inner()), Local().method(), (lambda: n)()

def fails():
    x = 1
    raise KeyError(x)
'''


def executed(code: Any, file: str) -> ModuleType:
    """The module of some code."""
    module = ModuleType("shapes")
    vars(module).update({"__file__": file, SWITCH_POINT: lambda: None})
    exec(code, vars(module))
    return module


def test_rewritten_code_does_what_the_source_does(tmp_path: Path) -> None:
    """Loops, branches, handlers, patterns, generators, classes: same results, same lines."""
    file = tmp_path / "shapes.py"
    file.write_text(SHAPES)
    plain: Any = executed(compile(SHAPES, str(file), "exec"), str(file))
    rewritten: Any = executed(preempted_code(SHAPES, str(file)), str(file))

    assert rewritten.shapes(6) == plain.shapes(6)
    assert rewritten.__doc__ == plain.__doc__
    assert rewritten.coroutine.__doc__ == "Has a docstring."
    lines = []
    for module in (plain, rewritten):
        with pytest.raises(KeyError) as found:
            module.fails()
        lines.append(traceback.extract_tb(found.value.__traceback__)[-1].lineno)
    assert lines[0] == lines[1]


def test_every_statement_of_a_function_has_a_switch_point() -> None:
    """The points are counted: one a statement, none for a docstring or a declaration."""
    calls = []
    source = (
        'def f():\n    "doc"\n    global g\n    a = 1\n    if a:\n        b = 2\n    return b\n'
    )
    space: dict[str, Any] = {SWITCH_POINT: lambda: calls.append(1)}
    exec(preempted_code(source, "f.py"), space)

    assert space["f"]() == 2
    assert len(calls) == 4


@pytest.mark.parametrize("name", ["no.such.module", "math", "sys"])
def test_a_module_that_cannot_be_copied_is_a_sentence(name: str) -> None:
    """Modules that are not there, or not in Python, are named with what to do."""
    with pytest.raises(VirtualTimeError, match="module"):
        OwnModules((name,)).find(name)


def test_a_program_that_is_the_main_module(tmp_path: Path) -> None:
    """The functions of a script have a copy for each process, too."""
    script = tmp_path / "script.py"
    script.write_text(
        "from watchkeeper.virtual import simulated\n"
        "count = 0\n"
        "def work(found):\n"
        "    global count\n"
        "    count += 1\n"
        "    found.append(count)\n"
        "@simulated(seeds=1, until_s=5, modules=['__main__'])\n"
        "def test(world):\n"
        "    found = []\n"
        "    world.process('a', work, found)\n"
        "    world.process('b', work, found)\n"
        "    world.finally_(lambda: found == [1, 1])\n"
        "if __name__ == '__main__':\n"
        "    test()\n"
        "    print('done', count)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("done 0\n", "")


def test_a_function_within_a_function_stays_what_it_is() -> None:
    """A closure has no copy: it is called as it is."""

    def inner() -> None:
        pass

    assert OwnModules((__name__,)).target_of(inner) is inner
    assert FirstInFirstOut().choose(0, []) == 0
