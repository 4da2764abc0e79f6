"""Verdicts of the shipped scenarios, to compare before and after a change of the simulation.

    python bench/verdicts.py --write before.json [--seeds 10] [--first 0] [--jobs 2]
    python bench/verdicts.py --against before.json

The first command writes, for each scenario and seed, the verdict of the run, the properties
that it violates, the text of every finding, and the fingerprint. The second runs the same seeds
and compares. Run the first one in a worktree of the commit to compare with.

A change that only makes the simulation faster moves nothing. A change that draws other latencies
moves fingerprints, and with them the texts, which name moments; verdicts and violated properties
still have to be the same, run by run.

Exit code 0: no verdict differs. 1: some do. 2: the file cannot be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, number, parser_of

from watchkeeper import simulate
from watchkeeper.scenarios import load
from watchkeeper.scenarios.shipped_files import shipped

A_CHUNK = 20
"""Seeds of one scenario that a process runs before it takes others."""
MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is compared by."""

    scenario: str
    seed: int
    verdict: str
    violated: tuple[str, ...]
    findings: str
    """The SHA-256 of all findings."""
    fingerprint: str

    @property
    def name(self) -> str:
        """The scenario and the seed."""
        return f"{self.scenario}/{self.seed}"


Chunk = tuple[str, int, int]
"""A scenario, its first seed, and the seed after its last."""

COMPARED: dict[str, Callable[[Run], object]] = {
    "verdict": lambda run: run.verdict,
    "violated properties": lambda run: run.violated,
    "findings": lambda run: run.findings,
    "fingerprint": lambda run: run.fingerprint,
}
BINDING = ("verdict", "violated properties")
"""What may differ in no run."""


def run_chunk(chunk: Chunk) -> list[Run]:
    """Run some seeds of a scenario."""
    name, first, end = chunk
    scenario = load(name)
    return [run_one(name, scenario, seed) for seed in range(first, end)]


def run_one(name: str, scenario: object, seed: int) -> Run:
    """Run a seed."""
    done = simulate(scenario, seed=seed)  # type: ignore[arg-type]
    findings = json.dumps([asdict(finding) for finding in done.findings], default=str)
    return Run(
        name,
        seed,
        done.verdict.value,
        tuple(done.violated),
        sha256(findings.encode()).hexdigest(),
        done.fingerprint,
    )


def chunks(names: Sequence[str], first: int, seeds: int) -> Iterator[Chunk]:
    """All seeds of all scenarios, a few at a time."""
    end = first + seeds
    for name, start in product(names, range(first, end, A_CHUNK)):
        yield name, start, min(start + A_CHUNK, end)


def run_all(work: list[Chunk], jobs: int) -> list[Run]:
    """Run every chunk, in so many processes."""
    if jobs == 1:
        return [run for chunk in work for run in run_chunk(chunk)]
    with ProcessPoolExecutor(jobs) as pool:
        return [run for done in pool.map(run_chunk, work) for run in done]


def read(path: Path) -> list[Run]:
    """The runs in a file that `--write` has made."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [Run(**{**row, "violated": tuple(row["violated"])}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        print(f"{path} has no runs to compare with: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def chunks_of(before: Sequence[Run]) -> Iterator[Chunk]:
    """The same runs again."""
    seeds: dict[str, list[int]] = {}
    for run in before:
        seeds.setdefault(run.scenario, []).append(run.seed)
    for name, ran in seeds.items():
        yield from chunks([name], min(ran), len(ran))


def compare(before: Sequence[Run], after: Sequence[Run]) -> tuple[Report, int]:
    """The report of what differs, and in how many runs a verdict does."""
    pairs = list(zip(before, after, strict=True))
    report = Report(
        f"Verdicts before and after: {number(len(pairs))} runs",
        ("compared", "runs that differ"),
    )
    wrong: dict[str, None] = {}
    for what, take in COMPARED.items():
        differing = [one.name for one, other in pairs if take(one) != take(other)]
        report.rows.append([what, str(len(differing))])
        report.data[what] = differing
        if what in BINDING:
            wrong.update(dict.fromkeys(differing))
    verdict = "NOT MET" if wrong else "met"
    report.notes = [f"bar: no verdict and no violated property differs: {verdict}"]
    report.notes += list(wrong)[:MOST_SHOWN]
    return report, len(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--scenarios", default="", help="names, by commas (all shipped ones)")
    parser.add_argument("--seeds", type=int, default=10, help="of each (10)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, help="write what the runs are compared by")
    parser.add_argument("--against", type=Path, help="compare with what was written")
    options = parser.parse_args(arguments)
    if (options.write is None) == (options.against is None):
        parser.error("give one of --write and --against")
    if options.against is not None:
        before = read(options.against)
        report, wrong = compare(before, run_all(list(chunks_of(before)), options.jobs))
        report.show(as_json=options.json)
        return 1 if wrong else 0
    names = options.scenarios.split(",") if options.scenarios else list(shipped())
    runs = run_all(list(chunks(names, options.first, options.seeds)), options.jobs)
    options.write.write_text(json.dumps([asdict(run) for run in runs]), encoding="utf-8")
    print(f"{number(len(runs))} runs written to {options.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
