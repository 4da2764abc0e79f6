"""A ZooKeeper for tests: this project's beside kazoo's own harness, by the same twenty tests.

    python bench/zookeeper_harness.py [--rounds 3] [--servers 1,3] [--json]

`kazoo.testing` starts Apache's servers, here from the jars of PySpark; it needs Java and
`pip install "kazoo[test]" "pyopenssl<24.3"`. The fixture `zookeeper` needs neither. Each round
is a process of pytest of its own: from its start to the first answered request, and to its end,
in wall time. Contenders take turns, in another order each round.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, number, parser_of, spread

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.jars import jar_folder, zookeeper_jars, zookeeper_version
from watchkeeper.real.zookeeper.java import find_java

TESTS = Path(__file__).parent / "support" / "harness_tests.py"
FIRST_PORT = 19_000
"""Below the ports that this project takes."""
TIMEOUT_S = 600
NAMES = {"kazoo": "kazoo.testing", "watchkeeper": "watchkeeper.testing"}


@dataclass(slots=True)
class Contender:
    """A harness with so many servers, and its times."""

    harness: str
    servers: int
    first_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    outcome: str = ""

    @property
    def name(self) -> str:
        """Its name in the table."""
        servers = "1 server" if self.servers == 1 else f"{self.servers} servers"
        return f"{NAMES[self.harness]}, {servers}"

    def run(self, environment: dict[str, str]) -> None:
        """Run the tests once."""
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / "first"
            begun = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-c", os.devnull, TESTS],
                env={**environment, **self._settings(), "FIRST_ANSWER": str(first)},
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
            self.end_s.append(time.monotonic() - begun)
            if not first.exists():
                raise EnvironmentProblem(
                    f"{self.name} answered no request; the end of its output:\n"
                    f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )
            self.first_s.append(float(first.read_text()) - begun)
            self.outcome = next(
                (line for line in reversed(done.stdout.splitlines()) if " in " in line), "?"
            ).partition(" in ")[0]

    def _settings(self) -> dict[str, str]:
        settings = {"HARNESS": self.harness, "SERVERS": str(self.servers)}
        if self.harness == "kazoo":
            jars = zookeeper_jars()
            netty = sorted(jar_folder().glob("netty-*.jar"))
            settings |= {
                "ZOOKEEPER_CLASSPATH": ":".join(map(str, (*jars, *netty))),
                "ZOOKEEPER_VERSION": zookeeper_version(jars),
                "ZOOKEEPER_CLUSTER_SIZE": str(self.servers),
                "ZOOKEEPER_PORT_OFFSET": str(FIRST_PORT),
                "PATH": f"{find_java().parent}{os.pathsep}{os.environ.get('PATH', '')}",
            }
        return settings

    def row(self) -> list[str]:
        """Its row of the table."""
        first, end = spread(self.first_s), spread(self.end_s)
        return [
            self.name,
            *(f"{value:.2f}" for value in (first.best, first.median, end.best, end.median)),
            self.outcome,
        ]


def measured(options: Namespace) -> Report:
    """Run every harness in every round."""
    report = Report(
        "Twenty tests on a ZooKeeper: seconds from the start of pytest",
        ("harness", "first answer, best", "median", "end, best", "median", "outcome"),
    )
    harnesses = ["watchkeeper"]
    if all(find_spec(library) for library in ("jks", "OpenSSL")):
        harnesses.insert(0, "kazoo")
    else:
        report.notes.append(
            'kazoo.testing is left out: it needs pip install "kazoo[test]" "pyopenssl<24.3"'
        )
    environment = _with_bytecode()
    sizes = [int(size) for size in options.servers.split(",")]
    contenders = [Contender(harness, size) for size in sizes for harness in harnesses]
    for at in range(options.rounds):
        first = at % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            contender.run(environment)
    report.rows = [contender.row() for contender in contenders]
    for size in sizes if len(harnesses) == 2 else []:
        theirs, ours = (each for each in contenders if each.servers == size)
        for what, slow, fast in (
            ("first answer", theirs.first_s, ours.first_s),
            ("end", theirs.end_s, ours.end_s),
        ):
            ratio = spread(slow).median / spread(fast).median
            report.notes.append(f"{what}, {size}: {number(ratio)} times as fast")
    report.data["contenders"] = [
        {"name": each.name, "first_s": each.first_s, "end_s": each.end_s, "outcome": each.outcome}
        for each in contenders
    ]
    return report


def _with_bytecode() -> dict[str, str]:
    """The environment of a user: what a process imports is compiled already."""
    cache = Path(tempfile.gettempdir()) / "watchkeeper-bench-bytecode"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    imports = "import pytest, kazoo.client, watchkeeper.testing.shared"
    subprocess.run([sys.executable, "-c", imports], env=environment, check=True)
    return environment


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default="1,3", help="numbers of servers (1,3)")
    options = parser.parse_args(arguments)
    measured(options).show(as_json=options.json)


if __name__ == "__main__":
    main()
