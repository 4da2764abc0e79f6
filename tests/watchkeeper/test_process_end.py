"""The end of the process of a command: quick, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S

BEGIN = "import atexit, sys; sys.argv = ['watchkeeper', 'scenarios', *{words}]\n"
MAIN = "from watchkeeper.__main__ import main\nmain()\n"
AT_EXIT = "atexit.register(lambda: print('the last words', end=''))\n"
SEEN_END = """
class Freed:
    def __del__(self):
        print('freed')
import builtins
builtins.kept = Freed()
"""
"""Python frees what is kept in a module that ends with the interpreter."""


def ended(program: str, *words: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code of a command in a process of its own, and what it printed."""
    text = BEGIN.format(words=words) + program + MAIN
    done = subprocess.run(
        [sys.executable, *options, "-c", text], capture_output=True, text=True, timeout=PATIENCE_S
    )
    return done.returncode, done.stdout


def test_nothing_is_freed_and_all_is_written() -> None:
    code, printed = ended(SEEN_END + AT_EXIT)

    assert code == 0
    assert printed.endswith("the last words")
    assert "steady-join" in printed
    assert "freed" not in printed


def test_the_exit_code_stays() -> None:
    assert ended("", "--nonsense")[0] == 4


@pytest.mark.parametrize(
    "watches",
    [
        "import cProfile; profile = cProfile.Profile(); profile.enable()\n",
        "import sys; sys.settrace(lambda *_: None)\n",
        "import threading as t; t.Thread(target=t.main_thread().join).start()\n",
    ],
    ids=["profiler", "debugger", "thread"],
)
def test_python_ends_a_process_in_which_more_has_to_end(watches: str) -> None:
    code, printed = ended(SEEN_END + watches)

    assert (code, "freed" in printed) == (0, True)
