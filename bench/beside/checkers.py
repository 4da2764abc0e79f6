"""Two-phase commit by three model checkers: this project's search, Stateright, and TLC.

Each counts its distinct states, and all counts have to be the same: a faster search of another
model is no comparison.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench.beside.two_phase import TwoPhaseCommit
from bench.tla.checker import TlcProblem, run_module

from watchkeeper.checker.search.search import Search, SearchOptions

HERE = Path(__file__).resolve().parent
RUST = HERE / "two_phase.rs"
TLA = HERE / "TwoPhase.tla"
STATERIGHT = "=0.31.0"
MANIFEST = f"""\
[package]
name = "two-phase"
version = "0.0.0"
edition = "2021"

[[bin]]
name = "two-phase"
path = "{RUST}"

[dependencies]
stateright = "{STATERIGHT}"
"""


class NotThere(Exception):
    """A participant cannot take part; the message says why."""


@dataclass(frozen=True, slots=True)
class Searched:
    """One search to the end."""

    cpu_s: float
    states: int


def ours(managers: int) -> Searched:
    """Search here, with one thread and without reduction, as the others do."""
    options = SearchOptions(reduces=False, keeps_edges=False)
    search = Search(TwoPhaseCommit(managers), options)
    began = time.process_time()
    found = search.run()
    if found.violations or not found.is_complete:
        raise SystemExit(f"two-phase commit is consistent, and the search says {found}")
    return Searched(time.process_time() - began, found.progress.states)


# --- Stateright ------------------------------------------------------------------------


def built_stateright(folder: Path) -> Path:
    """Build the model against the crate, and return the program; NotThere if it cannot be."""
    if shutil.which("cargo") is None:
        raise NotThere("cargo is not installed; it builds the model and the crate stateright")
    (folder / "Cargo.toml").write_text(MANIFEST, encoding="utf-8")
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(folder / "target")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "cargo build failed").splitlines()[-1].strip()
        raise NotThere(f"cargo cannot build stateright {STATERIGHT.lstrip('=')}: {reason}")
    return folder / "target" / "release" / "two-phase"


def stateright(program: Path, managers: int) -> Searched:
    """Search with Stateright, with one thread."""
    before = _children_s()
    done = subprocess.run(
        [str(program), str(managers)], capture_output=True, text=True, check=True
    )
    states, verdict = done.stdout.split()
    if verdict != "holds":
        raise SystemExit("two-phase commit is consistent, and Stateright finds a violation")
    return Searched(_children_s() - before, int(states))


# --- TLC -------------------------------------------------------------------------------


def tlc(jar: Path, managers: int) -> Searched:
    """Search with TLC, with one worker; the start of Java counts."""
    config = f"CONSTANT Count = {managers}\nINIT Init\nNEXT Next\nINVARIANT Consistent\n"
    before = _children_s()
    try:
        said = run_module(jar, TLA, config).said
    except TlcProblem as problem:
        raise NotThere(str(problem).splitlines()[0]) from None
    if said.violated:
        raise SystemExit("two-phase commit is consistent, and TLC finds a violation")
    return Searched(_children_s() - before, said.distinct)


def _children_s() -> float:
    """CPU seconds of the processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
