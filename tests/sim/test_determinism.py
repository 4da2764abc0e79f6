"""One seed, one run: in every process, under every hash seed, on every Python there is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import watchkeeper
from tests import HOME, SOURCE
from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import shipped

PROBE = """
import sys
from watchkeeper import simulate
for name, variant in (("gc-pause-zombie", "kafka_07"), ("zookeeper-rolling-restart", None),
                      ("rolling-upgrade", "hardened"), ("mass-start-herd", "documented")):
    print(simulate(name, seed=5, variant=variant).fingerprint)
"""


def fingerprints(python: str, hash_seed: str) -> str:
    """What the probe prints in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [python, "-c", PROBE], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected() -> str:
    """The fingerprints on this Python with hash seed 0."""
    return fingerprints(sys.executable, "0")


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_hash_seeds_change_nothing(hash_seed: str, expected: str) -> None:
    """No order of a set or of a dictionary keyed by objects leaks into a run."""
    assert fingerprints(sys.executable, hash_seed) == expected


@pytest.fixture(scope="module")
def others() -> dict[str, str]:
    """Version -> an interpreter that has the packages; `bench/fingerprints.py` makes them."""
    listed = subprocess.run(
        [sys.executable, str(HOME / "bench" / "fingerprints.py"), "--list"],
        capture_output=True,
        check=True,
    )
    return dict(json.loads(listed.stdout))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_pythons_change_nothing(version: str, expected: str, others: dict[str, str]) -> None:
    """The same on every Python that has been made ready."""
    if version not in others:
        pytest.skip(f"Python {version} is not ready; `python bench/fingerprints.py` makes it so")
    assert fingerprints(others[version], "0") == expected


LONG = ("offsets-move-to-kafka-and-back", "offsets-roll-back-as-worded", "group-reads-replicas")
"""More than a CPU second each."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in shipped()],
)
def test_twice_in_one_process(name: str) -> None:
    """Nothing is left in the process from an earlier run."""
    first = simulate(name, seed=11)
    again = simulate(name, seed=11)
    assert first.trace.rows == again.trace.rows
    assert first.fingerprint == again.fingerprint


def test_seeds_differ() -> None:
    """A seed is not ignored."""
    prints = {simulate("consumer-crash", seed=seed).fingerprint for seed in range(8)}
    assert len(prints) == 8


def test_streams_are_separate() -> None:
    """What one purpose draws does not move another: more fetching, the same elections."""
    slow = simulate(scenario("1s"), seed=4)
    fast = simulate(scenario("100ms"), seed=4)
    assert elections(slow) == elections(fast)


def scenario(fetch_every: str) -> dict[str, object]:
    """A rolling restart while a process fetches."""
    return {
        "name": "streams",
        "about": "streams of chance",
        "clusters": {"main": {"brokers": 1, "topics": {"clicks": {"partitions": 2}}}},
        "groups": {
            "group": {"consumers": 1, "streams": {"clicks": 1}, "fetch_every": fetch_every}
        },
        "timeline": [
            {"at": "0s", "produce": "clicks", "rate": "10/s"},
            {"at": "5s", "rolling_restart": "zookeeper", "each": "2s"},
        ],
        "settle": "10s",
    }


def elections(result: watchkeeper.Result) -> list[tuple[int, str]]:
    """When which server was elected."""
    return [
        (event.t_us, event.node)
        for event in result.trace
        if event.kind == EventKind.LEADER_ELECTED
    ]
