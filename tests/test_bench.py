"""Each bench, made small, runs and prints what it has to. No time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.live import skip_without_zookeeper

BENCH = Path(__file__).resolve().parent.parent / "bench"
COMMANDS = (
    *(
        "agree",
        "assignors",
        "broker",
        "calibration",
        "conformance",
        "decode",
        "explore",
        "fingerprints",
        "herd",
        "live",
    ),
    *("mutations", "operations", "seeds", "soak", "zoo"),
)
SHARED = {"contenders", "joins", "measuring", "recipe"}
"""Modules that are no commands."""
SMALL = {
    "assignors": ["--partitions", "2000", "--streams", "7", "--rounds", "1"],
    "broker": ["--megabytes", "2", "--rounds", "1", "--flush", "500"],
    "decode": ["--messages", "400", "--rounds", "1"],
    "explore": ["--only", "four", "--seconds", "1"],
    "fingerprints": [
        *("--pythons", ".".join(map(str, sys.version_info[:2])), "--hash-seeds", "0,1"),
        *("--scenarios", "consumer-crash", "--variants", "hardened,kafka_08", "--seeds", "1"),
    ],
    "herd": ["--members", "3,5"],
    "live": ["--sizes", "2x8", "--repeat", "1"],
    "mutations": ["--mutations", "3000"],
    "operations": ["--operations", "60", "--rounds", "1"],
    "seeds": ["--seeds", "2", "--rounds", "1"],
    "soak": ["--kills", "6", "--a-round", "3", "--settle", "10"],
    "zoo": ["--seeds", "3", "--plants", "rounds-down,half-a-batch"],
}


def bench(name: str, *arguments: str, code: int = 0) -> str:
    """What a bench prints, run as a person runs it: from any folder, by its path."""
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        cwd=BENCH.anchor,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def figures(name: str, *arguments: str) -> dict[str, Any]:
    """What a small run of a bench says, as JSON."""
    said: dict[str, Any] = json.loads(bench(name, *SMALL[name], *arguments, "--json"))
    return said


def test_every_command_is_known_here() -> None:
    """A bench that is added is run here and stands in the README."""
    files = {path.stem for path in BENCH.glob("*.py")} - SHARED
    page = (BENCH / "README.md").read_text()

    assert files == set(COMMANDS)
    assert [name for name in COMMANDS if f"`{name}.py`" not in page] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str) -> None:
    """`--help` says what it does and how."""
    said = bench(name, "--help")

    assert "usage" in said
    assert "--json" in said


def test_zoo() -> None:
    """A plant that every seed catches, and one that takes a search."""
    plants = figures("zoo")["plants"]

    assert [one["plant"] for one in plants] == ["rounds-down", "half-a-batch"]
    assert [one["seeds"] for one in plants] == [3, 0]
    assert [one["caught_by"] for one in plants] == ["full cover", "monotone offsets"]


def test_seeds() -> None:
    """The chaos run, each stage, and the empty runs; every one has its bar."""
    said = figures("seeds")

    names = [run["name"] for run in said["runs"]]
    assert names[0] == "chaos"
    assert [name.partition(",")[0] for name in names[1:]] == ["empty"] * 3
    assert set(said["runs"][0]["ms"]) == {"simulate", "judge", "fingerprint", "total"}
    assert [(bar["bar"], bar["unit"]) for bar in said["bars"]] == [
        (50.0, "seeds/s"),
        *[(2.0, "ms a seed")] * 3,
    ]
    assert {"cpu", "python", "cores"} <= set(said["machine"])


def test_operations() -> None:
    """Every kind of work, for one and three servers and one client and twenty."""
    said = figures("operations", "--clock", "wall")

    assert {(run["work"], run["servers"], run["clients"]) for run in said["runs"]} == {
        (work, servers, clients)
        for work in ("get", "set", "create", "mixed")
        for servers in (1, 3)
        for clients in (1, 20)
    }
    assert all(run["simpy_events_an_operation"] > 1 for run in said["runs"])
    assert [bar["bar"] for bar in said["bars"]] == [30_000.0] * 4


def test_decode() -> None:
    """Every codec of 0.7 and of 0.8; beside kafka-python if that is installed."""
    said = figures("decode")

    ours = {
        (run["format"], run["codec"]) for run in said["runs"] if run["what"] != "kafka-python"
    }
    codecs = ("none", "gzip", "snappy")
    assert ours == {
        *((form, codec) for form in ("0.7", "0.8") for codec in codecs),
        ("0.7, magic 0", "none"),
        ("0.8, keys", "none"),
    }
    assert said["bars"][0]["bar"] == 800_000
    assert len(said["bars"]) == (5 if find_spec("kafka") else 1)


def test_mutations() -> None:
    """Whatever is read gives values and errors that have names, and nothing else."""
    said = figures("mutations")

    outcomes = {run["read_as"]: run["outcomes"] for run in said["runs"]}
    assert len(outcomes) == 11
    assert all(one["a value"] for one in outcomes.values())
    assert not any("wrong" in one for one in outcomes.values())
    assert {"InvalidMessage", "InvalidMessageSize", "DecompressedTooLarge"} <= set(
        outcomes["0.7, consumed"]
    )
    assert [bar["verdict"] for bar in said["bars"]] == ["met", "met"]


PLANTS = {
    "an error without a name": ("codecs.CorruptCompression = ValueError", "ValueError: "),
    "no limit": (
        "gzip = codecs.CODECS[1]; "
        "codecs.CODECS[1] = (gzip[0], lambda data, limit, where: gzip[1](data, 10**9, where))",
        " bytes of memory for ",
    ),
    "no end": (
        "mutations.LONGEST_S = 0.2; "
        "mutations.recover = lambda data: all(not n for n in iter(int, 1))",
        "0.7, recovered TooLong",
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_mutations_find_what_is_wrong(plant: str) -> None:
    """The bench can fail: with a safeguard gone it does, and shows the bytes that did it."""
    planted, shown = PLANTS[plant]
    program = (
        f"import sys; sys.path.insert(0, {str(BENCH)!r}); import mutations\n"
        f"from model.log import codecs; {planted}\n"
        "sys.exit(mutations.main(['--mutations', '400']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=BENCH, check=False
    )

    assert done.returncode == 1, done.stderr
    assert "NOT MET" in done.stdout
    assert shown in done.stdout


def test_herd(tmp_path: Path) -> None:
    """A table and a plot; members read at least the minimum, and more the more they are."""
    said = figures("herd", "--out", str(tmp_path))

    three, five = said["runs"]
    assert (three["members"], five["members"]) == (3, 5)
    assert three["verdict"] == five["verdict"] == "holds"
    assert three["reads"] >= three["minimum"]
    assert five["reads"] > three["reads"]
    assert five["to_rest_ms"] > 0
    assert (tmp_path / "herd.png").read_bytes().startswith(b"\x89PNG")


def test_assignors() -> None:
    """Every assignor on every input; a bar for each assignor."""
    said = figures("assignors")

    assert len(said["runs"]) == 5 * 2 * 2
    assert [bar["bar"] for bar in said["bars"]] == [1.0] * 5


def test_live() -> None:
    """Every contender is clocked, and has asked for what the floor says at least."""
    skip_without_zookeeper()
    said = figures("live")

    runs = {run["contender"]: run for run in said["runs"]}
    assert set(runs) == {"hardened", "kafka_08", "recipe 0.2", "recipe 0"}
    assert [run["failures"] for run in runs.values()] == [[]] * 4
    (hardened,), (kafka_08,) = runs["hardened"]["joins"], runs["kafka_08"]["joins"]
    assert hardened["cost"]["operations"] >= hardened["floor"]
    assert kafka_08["cost"]["operations"] >= kafka_08["floor"]
    assert min(hardened["cost"]["trips"], kafka_08["cost"]["trips"]) >= 5
    assert runs["recipe 0.2"]["joins"][0]["seconds"] > 0.2
    assert all(run["joins"][0]["change"]["moved"] >= 2 for run in runs.values())
    assert len(said["bars"]) == 2


def test_soak() -> None:
    """Members and servers are killed in both layouts, and nothing is amiss."""
    skip_without_zookeeper()
    said = figures("soak")

    assert [one["wrong"] for one in said["rounds"]] == [[], []]
    assert [one["layout"] for one in said["rounds"]] == ["0.7", "0.8"]
    assert [sum(one["kills"].values()) for one in said["rounds"]] == [3, 3]
    assert [bar["verdict"] for bar in said["bars"]] == ["met", "met"]


def test_fingerprints() -> None:
    """One fingerprint for each run under both hash seeds; a refused layout is said to be."""
    said = figures("fingerprints")

    assert said["different"] == []
    assert set(said["fingerprints"]) == {
        "consumer-crash/hardened/0",
        "consumer-crash/kafka_08/0",
    }
    assert all(len(one) == 64 for one in said["fingerprints"].values())


def test_fingerprints_of_no_python(tmp_path: Path) -> None:
    """A version that is not there is named, and nothing to compare with is no agreement."""
    done = subprocess.run(
        [sys.executable, str(BENCH / "fingerprints.py"), "--pythons", "3.99"],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=False,
    )

    assert done.returncode == 2
    assert "Python 3.99 is not installed here" in done.stderr


def test_the_environments_that_are_ready(tmp_path: Path) -> None:
    """This very Python is ready; another would have to be made."""
    here = ".".join(map(str, sys.version_info[:2]))
    said = json.loads(
        bench("fingerprints", "--list", "--pythons", f"{here},3.99", "--cache", str(tmp_path))
    )

    assert said == {here: sys.executable}


@pytest.mark.parametrize("name", ["assignors", "operations"])
def test_what_a_person_sees(name: str) -> None:
    """A table, the bars with their verdicts, and the machine."""
    said = bench(name, *SMALL[name])

    assert "cores, CPython" in said
    assert any(line.startswith("bar ") for line in said.splitlines())
    assert any(line.endswith((" met", "NOT MET")) for line in said.splitlines())
