"""Runs what a page shows, from its beginning to its end, in a folder of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

import watchkeeper
from tests import HOME
from tests.support.pages.markdown import Block, Step, blocks, steps
from tests.support.pages.output import difference, is_same, normal, renewed
from watchkeeper.cli.main import run_command
from watchkeeper.logs.activity_command import ABOUT as ACTIVITY_JOBS

TOOLS = {"watchkeeper": "-P -m watchkeeper", "pytest": "-P -m pytest", "python": ""}
"""Command -> how this very Python runs it."""

LONGEST_S = 300
INSTALLS = "pip install"
ZOOKEEPER = "localhost:2181"
"""Where the reader has one; what needs it is run by the tests of its page in `tests/real`."""
SPARK = "spark"
"""What a command names, or the program it runs, that needs Java."""
IN_PROCESS = frozenset(
    {"run", "report", "diff", "explore", "scenarios", "variants", "schema", "validate"}
)
"""Commands that print the same when they run in this process, which has the imports done,"""
OUT_OF_PROCESS = (".py", "live", "--jobs", *"|&;<>$`*?~#(){}\\\n")
"""unless they load a program, start processes, or need more of a shell than"""
END = re.compile(r" (?:> (?P<file>[\w.-]+)|\| head -(?P<first>\d+)|\| tail -(?P<last>\d+))$")
"""an end like this."""
FONTS = Path(tempfile.gettempdir()) / "watchkeeper-test-fonts"
"""Where commands find the list of fonts, which takes seconds to make."""
FOREIGN = ("jq",)
"""Commands of others; where one is missing, what needs it is passed over."""


class Session:
    """A reader at work: one folder, and one command after the other."""

    def __init__(self, folder: Path) -> None:
        self.home = folder.parent
        self.folder = folder
        """Where the reader is now."""
        self.code = 0
        """The exit code of the last command."""
        bin_folder = folder.parent / f"{folder.name}-bin"
        bin_folder.mkdir()
        for name, how in TOOLS.items():
            tool = bin_folder / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {how} "$@"\n')
            tool.chmod(0o755)
        shipped = folder / "scenarios" / "files"
        shipped.mkdir(parents=True)
        for path in (HOME / "scenarios" / "files").glob("*.yaml"):
            shutil.copy(path, shipped)
        kept = {key: value for key, value in os.environ.items() if key.startswith("PYTHON")}
        self.environment = {
            **kept,
            "PYTHONUNBUFFERED": "1",  # both outputs in their order, as a terminal shows them
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "HOME": str(folder.parent),
            "MPLCONFIGDIR": str(FONTS),
            "PYTHONPATH": str(Path(watchkeeper.__file__).parent.parent),
            "LC_ALL": "C.UTF-8",
            "WATCHKEEPER_PROGRESS": "0",
            "CI": "true",  # what Hypothesis draws is then the same each time
        }

    def run(self, command: str) -> list[str]:
        """Run a command as a shell does, which knows the last exit code; what it prints."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            command = "true"
        end = END.search(command)
        bare = END.sub("", command)
        if _runs_in_process(bare):
            return self._run_in_process(shlex.split(bare)[1:], end)
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code})\n{command}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        self.code = done.returncode
        return normal(done.stdout)

    def _run_in_process(self, words: list[str], end: re.Match[str] | None) -> list[str]:
        """Run a command of watchkeeper, and what its line ends with, without processes."""
        both = StringIO()
        output = StringIO() if end else both
        with (
            chdir(self.folder),
            patch.dict(os.environ, {"COLUMNS": "80"}),
            redirect_stdout(output),
            redirect_stderr(both),
        ):
            self.code = run_command(words)
        if end is None:
            return normal(both.getvalue())
        if end["file"]:
            (self.folder / end["file"]).write_text(output.getvalue())
            return normal(both.getvalue())
        self.code = 0  # of head, or tail
        lines = output.getvalue().splitlines()
        shown = lines[: int(end["first"])] if end["first"] else lines[-int(end["last"]) :]
        return normal("\n".join([*both.getvalue().splitlines(), *shown]))

    def can_run(self, command: str) -> bool:
        """Whether everything that a command needs is on this machine."""
        if ZOOKEEPER in command:
            return False
        path = self.environment["PATH"]
        is_job = any(f"activity {name} " in command for name in ACTIVITY_JOBS)
        if (SPARK in command or is_job) and shutil.which("java", path=path) is None:
            return False
        return all(
            shutil.which(program, path=path) for program in FOREIGN if program in command.split()
        )

    def write(self, block: Block) -> None:
        """Write a block that has a name to its file."""
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)


def _runs_in_process(command: str) -> bool:
    """Whether a command is one of watchkeeper that needs no process and no shell."""
    if any(program in command for program in OUT_OF_PROCESS):
        return False
    program, name, *_ = [*shlex.split(command), "", ""]
    return program == "watchkeeper" and name in IN_PROCESS


def commands_of(block: Block) -> list[Step]:
    """What is to be typed: a console block shows output too, a sh block does not."""
    if block.language == "console":
        return steps(block)
    if block.language == "sh":
        lines = enumerate(block.lines, block.line)
        return [Step(line, number + 1, ()) for number, line in lines if line.strip()]
    return []


def played(text: str, folder: Path) -> tuple[list[str], str]:
    """Run everything that a page shows; what is wrong, and the page with renewed output."""
    session = Session(folder)
    found = blocks(text)
    wrong: list[str] = []
    lines = text.splitlines()
    for step, output in _edits(found, session, wrong):
        lines[step.line - 1 : step.line - 1 + len(step.shown)] = output
    return wrong, "\n".join(lines) + "\n"


def _edits(
    found: list[Block], session: Session, wrong: list[str]
) -> list[tuple[Step, list[str]]]:
    """Run all blocks; the steps whose output is another now, the last one first."""
    edits: list[tuple[Step, list[str]]] = []
    for number, block in enumerate(found):
        if block.file:
            session.write(block)
        if block.language == "python" and not _runs_later(block, found[number:]):
            wrong.extend(_run_python(block, session))
        typed = commands_of(block)
        for step, after in zip_longest(typed, typed[1:]):
            if INSTALLS in step.command or not session.can_run(step.command):
                continue
            real = session.run(step.command)
            if block.language == "console" and not is_same(normal("\n".join(step.shown)), real):
                shown = difference(step.shown, real)
                wrong.append(f"line {step.line}: $ {step.command}\n{shown}")
                edits.insert(0, (step, renewed(step.shown, real)))
            wrong.extend(_suspicious(session, step, after, real))
    return edits


ASKS_FOR_CODE = "echo $?"


def _suspicious(
    session: Session, step: Step, after: Step | None, real: list[str]
) -> Iterator[str]:
    """What no page may show without saying so: a command that fails, this very machine."""
    output = "\n".join(real)
    if session.code != 0 and (after is None or after.command != ASKS_FOR_CODE):
        yield f"line {step.line}: {step.command} fails with {session.code}:\n{output}"
    if str(session.home) in output:
        yield f"line {step.line}: {step.command} shows a path of this machine:\n{output}"


def _runs_later(block: Block, later: list[Block]) -> bool:
    """Whether a console block below runs this file."""
    typed = (step.command for block in later for step in commands_of(block))
    return bool(block.file) and any(block.file in command for command in typed)


def _run_python(block: Block, session: Session) -> Iterator[str]:
    """Run a Python block, or its tests; what went wrong."""
    file = block.file or f"test_line_{block.line}.py"
    (session.folder / file).write_text(block.text)
    is_test = "def test_" in block.text
    output = session.run(f"{'pytest -q' if is_test else 'python'} {file}")
    if session.code != 0:
        errors = "\n".join(output)
        yield f"line {block.line}: this Python does not run:\n{errors}"
