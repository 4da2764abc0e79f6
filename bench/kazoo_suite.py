"""kazoo's own test suite, unmodified, on Apache's server, on this project's, in virtual time.

    python bench/kazoo_suite.py [--servers 3] [--third] [--only test_lock] [--kinds java,python]
    python bench/kazoo_suite.py --servers 3 --kinds java,virtual [--seed 7]

The suite is the one of the installed kazoo. Its files run one after the other, each in a
process of its own; its harness gets its servers from `support/kazoo_cluster.py` instead of from
a folder of Apache's distribution. The harness ends its servers after each class of tests and
starts new ones, empty.

Printed are the counts on both, and each test whose outcome differs. Such tests are run again,
alone, on both (`--again`), since many tests wait for times that a busy machine does not keep:
one that differs each time is a difference, one that does not is listed as unsteady. A test that
takes longer than `--seconds` is stopped and counts as one that hangs. `--third` takes every third
test, by the order of the names; it is the same third each time.

What no server here offers fails on both: TLS, SASL. With one server, tests that stop another
one fail on both too.

`virtual` runs each test in a world of its own: the test, its `setUp` and its `tearDown` are one
process in virtual time, and the servers are the world's (`support/kazoo_virtual.py`). What needs
real TLS or SASL, another handler than kazoo's default one, or a pipe of a real process
(`NOT_VIRTUAL`) does not run there and is left out on all kinds; the seconds are compared too.

Exit code 1 if a test passes on Apache's server and fails each time on ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import KINDS, NAMES, Where

SUPPORT = Path(__file__).parent / "support"
NOT_VIRTUAL = {
    "test_eventlet_handler.py": "another handler",
    "test_gevent_handler.py": "another handler",
    "test_sasl.py": "SASL",
    "TestSSLClient": "TLS",
    "SelectTestCase::test_select": "the pipe of a real process",
}
"""The tests that virtual time does not run (a file, a class or a test), and why."""
OUTCOMES = ("passed", "skipped", "failed", "hangs", "lost")
"""`lost`: the process of its file has ended before the test reported anything."""
PYTEST = (
    *(sys.executable, "-m", "pytest"),
    *("-p", "kazoo_cluster", "-p", "no:watchkeeper", "-p", "no:cacheprovider"),
    *("-o", "addopts=", "-c", os.devnull, "--rootdir", ".", "-q", "--tb=short"),
)
SPARE_S = 120
"""What the process of a file may take beyond its tests, for starting servers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test."""

    outcome: str
    why: str = ""
    seconds: float = 0.0


Outcomes = dict[str, Outcome]


@dataclass(frozen=True, slots=True)
class Run:
    """Runs tests on servers of one kind."""

    kind: Where
    servers: int
    seconds: int
    log: Path
    """The file that takes what pytest prints."""
    seed: int = 0
    """Of the schedule, in virtual time."""

    def outcomes(self, tests: Sequence[str]) -> Outcomes:
        """Run tests, each file's in a process of its own; worlds need no more than one."""
        found: Outcomes = {}
        parts = {"all": list(tests)} if self.kind == "virtual" else by_file(tests)
        for file, names in parts.items():
            begun = time.monotonic()
            found.update(self._of_file(names))
            counts = Counter(found[name].outcome for name in names)
            shown = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
            took_s = time.monotonic() - begun
            print(f"{NAMES[self.kind]}: {file}: {shown}, {took_s:.0f} s", file=sys.stderr)
        return found

    def _of_file(self, tests: Sequence[str]) -> Outcomes:
        with tempfile.TemporaryDirectory() as folder, self.log.open("ab") as log:
            outcomes = Path(folder) / "outcomes"
            outcomes.touch()
            process = subprocess.Popen(
                [*PYTEST, *tests],
                cwd=suite(),
                env={
                    **environment(self.kind, self.servers, self.seconds, outcomes),
                    "SEED": str(self.seed),
                },
                stdout=log,
                stderr=log,
            )
            try:
                process.wait(self.seconds * len(tests) + SPARE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            lines = [json.loads(line) for line in outcomes.read_text().splitlines()]
        reported = outcomes_of(lines)
        return {test: reported.get(test, Outcome("lost")) for test in tests}


def outcomes_of(lines: Iterable[Mapping[str, str | float]]) -> Outcomes:
    """The outcome of each test: a failure in its set-up or clean-up is one of the test."""
    found: Outcomes = {}
    for line in lines:
        test, why = str(line["test"]), str(line["why"])
        outcome = str(line["outcome"])
        if outcome == "failed" and "Hangs" in why:
            outcome = "hangs"
        if test not in found or outcome != "passed":
            found[test] = Outcome(outcome, why, float(line["seconds"]))
    return found


def suite() -> Path:
    """The folder that holds the installed kazoo."""
    spec = find_spec("kazoo")
    if spec is None or spec.origin is None:
        sys.exit("kazoo is not installed, and its test suite comes with it; pip install kazoo")
    return Path(spec.origin).parent.parent


def environment(kind: Where, servers: int, seconds: int, outcomes: Path) -> dict[str, str]:
    """The environment of a process of the suite."""
    return {
        **{name: value for name, value in os.environ.items() if name != "CI"},
        "PYTHONPATH": str(SUPPORT),
        "SERVERS_UNDER_TEST": kind,
        "OUTCOMES": str(outcomes),
        "SECONDS_A_TEST": str(seconds),
        "ZOOKEEPER_VERSION": "3.9.5",
        "ZOOKEEPER_CLUSTER_SIZE": str(servers),
    }


def all_tests() -> list[str]:
    """The names of all tests of the suite, as pytest collects them."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*PYTEST, "--collect-only", "kazoo/tests"],
            cwd=suite(),
            env=environment("java", 1, 1, Path(folder) / "none"),
            capture_output=True,
            text=True,
            check=False,
        )
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    if done.returncode or not tests:
        sys.exit(
            "kazoo's tests could not be collected; they need objgraph beside pytest:\n"
            f"{done.stdout}{done.stderr}"
        )
    return tests


def is_virtual(test: str) -> bool:
    """Whether a test runs in virtual time too."""
    return not any(
        f"/{name}" in test or f"::{name}::" in test or test.endswith(f"::{name}")
        for name in NOT_VIRTUAL
    )


def by_file(tests: Iterable[str]) -> dict[str, list[str]]:
    """The tests of each file, in their order."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    return files


@dataclass(slots=True)
class Comparison:
    """The outcomes on servers of each kind, and what differs."""

    by_kind: dict[Where, Outcomes]
    again: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """Test that differed -> its outcomes in each further run, by kind."""

    @property
    def differing(self) -> list[str]:
        """The tests whose outcome depends on the servers."""
        runs = list(self.by_kind.values())
        return [
            test
            for test in runs[0]
            if len({outcome_class(outcomes[test].outcome) for outcomes in runs}) > 1
        ]

    def is_steady(self, test: str) -> bool:
        """Whether a test differed in the further runs too, each time alike."""
        first = tuple(self.by_kind[kind][test].outcome for kind in self.by_kind)
        classes = tuple(map(outcome_class, first))
        return all(tuple(map(outcome_class, run)) == classes for run in self.again.get(test, []))

    def passed(self, kind: Where) -> int:
        """How many tests have passed on servers of a kind, in the first run or a further one."""
        at = list(self.by_kind).index(kind)
        return sum(
            outcome.outcome == "passed"
            or any(run[at] == "passed" for run in self.again.get(test, []))
            for test, outcome in self.by_kind[kind].items()
        )

    @property
    def worse(self) -> list[str]:
        """The tests that pass on the first kind of servers, and on the last one never."""
        kinds = list(self.by_kind)
        first, last = self.by_kind[kinds[0]], self.by_kind[kinds[-1]]
        return [
            test
            for test in self.differing
            if first[test].outcome == "passed" and last[test].outcome != "passed"
            if all(run[-1] != "passed" for run in self.again.get(test, []))
        ]


def outcome_class(outcome: str) -> str:
    """Tests that fail and tests that hang do not differ."""
    return outcome if outcome in ("passed", "skipped") else "failed"


def compared(options: Namespace, tests: list[str]) -> Comparison:
    """Run tests on all kinds, and those that differ again."""
    runs = {
        kind: Run(kind, options.servers, options.seconds, options.log, options.seed)
        for kind in options.kinds
    }
    comparison = Comparison({kind: run.outcomes(tests) for kind, run in runs.items()})
    differing = comparison.differing
    for _ in range(options.again if differing else 0):
        once_more = [run.outcomes(differing) for run in runs.values()]
        for test in differing:
            comparison.again.setdefault(test, []).append(
                tuple(outcomes[test].outcome for outcomes in once_more)
            )
    return comparison


def reported(comparison: Comparison, options: Namespace) -> Report:
    """The table of counts, and the differences by name."""
    report = Report(
        f"kazoo {version('kazoo')}'s own test suite, {options.servers} server(s)",
        ("servers", "tests", *OUTCOMES, "seconds"),
    )
    for kind, outcomes in comparison.by_kind.items():
        counts = Counter(outcome.outcome for outcome in outcomes.values())
        seconds = sum(outcome.seconds for outcome in outcomes.values())
        cells = (len(outcomes), *(counts[outcome] for outcome in OUTCOMES), round(seconds))
        report.rows.append([NAMES[kind], *map(str, cells)])
        report.data[kind] = {name: counts[name] for name in OUTCOMES}
    differing = comparison.differing
    report.data["differences"] = {
        test: {kind: vars_of(outcomes[test]) for kind, outcomes in comparison.by_kind.items()}
        for test in differing
    }
    report.data["steady"] = [test for test in differing if comparison.is_steady(test)]
    report.data["fails_on_both"] = failing_everywhere(comparison)
    if len(comparison.by_kind) > 1:
        least, ours = (comparison.passed(kind) for kind in (options.kinds[0], options.kinds[-1]))
        report.bars.append(Bar("tests passed", "at least", least, "as Apache's", once(ours)))
    if "virtual" in comparison.by_kind:
        report.notes = [*faster_lines(comparison)]
    report.notes += [*difference_lines(comparison), *report.data["fails_on_both"]]
    return report


def faster_lines(comparison: Comparison) -> list[str]:
    """How many times sooner the tests that pass everywhere end in virtual time."""
    runs = comparison.by_kind
    passing = [
        test
        for test in runs["virtual"]
        if all(outcomes[test].outcome == "passed" for outcomes in runs.values())
    ]
    took_s = {kind: sum(runs[kind][test].seconds for test in passing) for kind in runs}
    return [
        f"{len(passing)} tests that pass on each: {NAMES[kind]} {took_s[kind]:.1f} s, in virtual "
        f"time {took_s['virtual']:.2f} s, {took_s[kind] / took_s['virtual']:.0f} times sooner"
        for kind in runs
        if kind != "virtual"
    ]


def vars_of(outcome: Outcome) -> dict[str, str | float]:
    return {"outcome": outcome.outcome, "why": outcome.why, "seconds": outcome.seconds}


def difference_lines(comparison: Comparison) -> list[str]:
    """Each test that differs, with the outcomes and why."""
    lines = []
    for test in comparison.differing:
        steady = "" if comparison.is_steady(test) else " (unsteady: not each time)"
        lines.append(f"differs: {test}{steady}")
        for kind, outcomes in comparison.by_kind.items():
            outcome = outcomes[test]
            lines.append(f"    {NAMES[kind]}: {outcome.outcome} {outcome.why}".rstrip())
    return lines or ["no test differs"]


def failing_everywhere(comparison: Comparison) -> list[str]:
    """The tests that pass on no kind of servers."""
    runs = list(comparison.by_kind.values())
    return [
        f"fails on each: {test}: {runs[0][test].why}"
        for test in runs[0]
        if all(outcome_class(outcomes[test].outcome) == "failed" for outcomes in runs)
    ]


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--servers", type=int, default=1, help="servers of the cluster (1)")
    parser.add_argument("--third", action="store_true", help="every third test")
    parser.add_argument("--only", default="", help="tests whose name has this in it")
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help="of java, python, virtual (java,python)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of virtual time's schedule (0)")
    parser.add_argument(
        "--seconds", type=int, default=90, help="the longest a test may take (90)"
    )
    parser.add_argument("--again", type=int, default=2, help="further runs of what differs (2)")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="what pytest prints")
    options = parser.parse_args()
    options.kinds = tuple(options.kinds.split(","))
    return options


def main() -> None:
    options = parsed()
    tests = [test for test in all_tests() if options.only in test]
    if "virtual" in options.kinds:
        tests = [test for test in tests if is_virtual(test)]
    if options.third:
        tests = sorted(tests)[::3]
    comparison = compared(options, tests)
    reported(comparison, options).show(as_json=options.json)
    if len(options.kinds) > 1 and comparison.worse:
        sys.exit(1)


if __name__ == "__main__":
    main()
