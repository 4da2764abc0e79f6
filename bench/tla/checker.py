"""One run of TLC on a module, and what it says: counts, a violation, a counterexample.

TLC searches breadth first with one worker, so its counterexample is a shortest one. All that it
writes goes to a temporary folder: the folder of the models is only read.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.checker.replication.partition import Bounds
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

HEAP = "-Xmx3g"
_VERSION = re.compile(r"^TLC2 (Version .+)$")
_COUNTS = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found, ([\d,]+) ")
_DEPTH = re.compile(r"^The depth of the complete state graph search is (\d+)\.")
_VIOLATED = re.compile(r"^Error: Invariant (\w+) is violated(.*)$")
_ERROR = re.compile(r"^Error: (.*)$")
_STATE = re.compile(r"^State \d+:")
_FOLLOWS = ("Error: The behavior up to this point is", "Error: The error occurred when TLC")
"""Errors that only introduce a trace."""


class TlcProblem(Exception):
    """TLC did not end as it does at the end of a search."""


@dataclass(frozen=True, slots=True)
class TlcSaid:
    """What TLC has said at its end."""

    version: str
    generated: int
    """Successors with repetitions, the initial state included."""
    distinct: int
    queued: int
    """States that it had not expanded at its end; 0 where it has seen all."""
    depth: int
    """The number of states on the longest of the shortest paths."""
    violated: str
    """The invariant that is violated; empty for none."""
    failed: str
    """Why an expression could not be evaluated; empty where all could."""
    states: tuple[str, ...]
    """The text of each state of its counterexample, from the initial state on."""

    @property
    def steps(self) -> int:
        """The number of steps to the violation."""
        return max(len(self.states) - 1, 0)


@dataclass(frozen=True, slots=True)
class TlcRun:
    """A run of TLC."""

    said: TlcSaid
    seconds: float
    """Wall time, the start of Java and the parsing of the modules included."""
    dump: str
    """Every distinct state, where that was wanted."""


def parsed(text: str) -> TlcSaid:
    """Read what TLC prints.

    Raises TlcProblem where the text is not that of a search which has come to an end.
    """
    version, depth, violated = "", 0, ""
    counts, errors = [0, 0, 0], list[str]()
    lines = text.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if found := _VERSION.match(line):
            version = found[1]
        elif found := _COUNTS.match(line):
            counts = [int(one.replace(",", "")) for one in found.groups()]
        elif found := _DEPTH.match(line):
            depth = int(found[1])
        elif found := _VIOLATED.match(line):
            violated = found[1]
        elif (found := _ERROR.match(line)) and not line.startswith(_FOLLOWS):
            errors += [found[1], after]  # what failed, and why
    if "Finished in " not in text or not version:
        raise TlcProblem(f"TLC did not finish a search:\n{text[-2000:]}")
    failed = "" if violated else " ".join(errors)
    if failed and "Evaluating invariant" not in failed:
        raise TlcProblem(f"TLC cannot search this model: {failed}")
    generated, distinct, queued = counts
    states = tuple(states_of(_trace(text, violated)))
    return TlcSaid(version, generated, distinct, queued, depth, violated, failed, states)


def _trace(text: str, violated: str) -> str:
    """The part of the output that has the counterexample."""
    if not violated:
        return ""
    _, _, after = text.partition(f"Invariant {violated} is violated")
    first, _, rest = after.partition("\n")
    return (
        f"State 1: <Initial predicate>\n{rest}" if first.startswith(" by the initial") else rest
    )


def states_of(text: str) -> list[str]:
    """Return the text of each state in a trace or a dump, without its headline."""
    states: list[list[str]] = []
    is_state = False
    for line in text.splitlines():
        if _STATE.match(line):
            states.append([])
            is_state = True
        elif not line.strip():
            is_state = False  # an empty line ends a state
        elif is_state:
            states[-1].append(line)
    return ["\n".join(lines) for lines in states]


def run_tlc(
    jar: Path, models: Path, module: str, bounds: Bounds, invariant: str, *, dumps: bool = False
) -> TlcRun:
    """Run TLC on a published model for one invariant, or none, to the end or the first violation.

    Raises EnvironmentProblem where the jar, the module or Java is missing; TlcProblem where TLC
    says something else than at the end of a search.
    """
    return run_module(jar, models / f"{module}.tla", config_of(bounds, invariant), dumps=dumps)


def run_module(jar: Path, module: Path, config: str, *, dumps: bool = False) -> TlcRun:
    """Run TLC on the module in a file, with a configuration; raises as `run_tlc` does."""
    for path, what in ((jar, "the jar of TLC"), (module, "a published model")):
        if not path.is_file():
            raise EnvironmentProblem(f"{path}, {what}, is not a file; give another path")
    with tempfile.TemporaryDirectory(prefix="tlc-") as folder:
        written = Path(folder) / "model.cfg"
        written.write_text(config, encoding="utf-8")
        dump = Path(folder) / "states.dump"
        began = time.perf_counter()
        done = subprocess.run(
            [
                *(str(find_java()), "-XX:+UseParallelGC", HEAP, f"-Djava.io.tmpdir={folder}"),
                *("-cp", str(jar.resolve()), "tlc2.TLC", "-workers", "1", "-deadlock"),
                *("-noGenerateSpecTE", "-metadir", folder, "-config", str(written)),
                *("-fp", "0", "-seed", "0", *(("-dump", str(dump)) if dumps else ())),
                str(module.resolve()),
            ],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        seconds = time.perf_counter() - began
        seen = dump.read_text(encoding="utf-8") if dumps else ""
    return TlcRun(parsed(done.stdout), seconds, seen)


def config_of(bounds: Bounds, invariant: str) -> str:
    """Return the configuration of a run: the same bounds, in the words of the models."""
    replicas = ", ".join(replica_names(bounds.replicas))
    lines: Sequence[str] = (
        "CONSTANTS",
        f"  Replicas = {{{replicas}}}",
        f"  LogSize = {bounds.log}",
        f"  MaxRecords = {bounds.records}",
        f"  MaxLeaderEpoch = {bounds.epochs - 1}",
        "INIT Init",
        "NEXT Next",
        *((f"INVARIANT {invariant}",) if invariant else ()),
    )
    return "\n".join(lines) + "\n"


def replica_names(replicas: int) -> list[str]:
    """Return the names of the replicas: `r` and the number."""
    return [f"r{number}" for number in range(replicas)]
