"""The twelve tasks of a newcomer, each with what its output has to say."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.newcomer_steps.environment import Done, Environment


class Row(NamedTuple):
    """What was tried, what came, and whether that is right."""

    what: str
    command: str
    code: int
    said: str
    seconds: float
    problem: str
    """Why it is not right; empty where it is."""


TABLE = """\
from watchkeeper import simulate
result = simulate("first.yaml", seed=3)
print(result.to_frame().num_rows == len(result.trace), result.write("kept").name)
assert "<table>" in result._repr_html_() or result.holds
"""
CREATE = """\
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1]); client.start()
print(client.create("/first", b"x")); client.stop()
"""
Step = tuple[str, tuple[str, ...], int, tuple[str, ...]]
STEPS: tuple[Step, ...] = (
    ("read the help", ("watchkeeper", "--help"), 0, ("Run and check", "Exit codes")),
    (
        "run a shipped scenario",
        ("watchkeeper", "run", "consumer-crash"),
        0,
        ("holds, as expected", "reproduce", "ownership.png"),
    ),
    ("open its page", ("watchkeeper", "open"), 0, ("runs/consumer-crash-hardened-sim-0/index",)),
    ("begin a project", ("watchkeeper", "init"), 0, ("first.yaml", "test_first.py")),
    ("run its test", ("python", "-m", "pytest", "-q"), 0, ("20 passed",)),
    (
        "see a variant fail",
        ("watchkeeper", "run", "gc-pause-zombie", "--variant", "kafka_08", "--no-pictures"),
        0,
        ("violated, as expected", "why ", "still fetched"),
    ),
    (
        "search every interleaving",
        ("watchkeeper", "explore", "consumer-crash", "--variant", "kafka_07"),
        1,
        ("the shortest way to violate", "reproduce"),
    ),
    (
        "sweep seeds",
        ("watchkeeper", "sweep", "first.yaml", "--seeds", "50", "--out", "swept"),
        0,
        ("50 runs", "hold"),
    ),
    ("use a result in Python", ("python", "-c", TABLE), 0, ("True index.html",)),
    (
        "run it live",
        ("watchkeeper", "run", "first.yaml", "--world", "live", "--no-pictures"),
        0,
        ("first, hardened, live", "holds"),
    ),
)
"""What is tried, its words, its exit code, and what its output has."""


def tasks(environment: Environment, *, installs: bool) -> Iterator[Row]:
    """Do each task in turn; the first installs the program."""
    if installs:
        done = environment.install()
        yield _row("install", "pip install '.[pytest,arrow]'", done, 0, ())
    for what, words, code, wanted in STEPS:
        done = environment.run(*words)
        yield _row(what, _shown(words), done, code, wanted)
    yield _with_a_server(environment)


def _shown(words: tuple[str, ...]) -> str:
    return "python -c ..." if words[:2] == ("python", "-c") else " ".join(words)


def _row(what: str, command: str, done: Done, code: int, wanted: tuple[str, ...]) -> Row:
    first = next((line for line in done.out.splitlines() if line.strip()), done.sentence)
    missing = [text for text in wanted if text not in done.said]
    problem = f"it says nothing of {missing[0]!r}" if missing else ""
    if done.code != code:
        problem = f"exit code {done.code}, expected {code}: {done.sentence}"
    return Row(what, command, done.code, first, done.seconds, problem)


def _with_a_server(environment: Environment) -> Row:
    """Use a ZooKeeper from a program, and end it."""
    words = ("watchkeeper", "zookeeper", "--port", "0")
    began = time.monotonic()
    with environment.start(*words) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            hosts = line.partition("serves ")[2].partition(",")[0]
            used = environment.run("python", "-c", CREATE, hosts)
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=60)
        finally:
            server.kill()
    done = Done(code, line, used.err, time.monotonic() - began)
    wanted = ("serves 127.0.0.1",)
    row = _row("use a ZooKeeper", "watchkeeper zookeeper --port 0", done, 0, wanted)
    return row._replace(problem=row.problem or ("" if used.out == "/first\n" else used.sentence))
