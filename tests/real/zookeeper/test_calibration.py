"""A real ZooKeeper is measured, and a scenario simulated with what was found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import make_digest_acl

from model.measuring import QUICK, Sizes
from real.ensemble import Ensemble
from scenarios.profiles import load_profile
from tests.live import descendants, skip_without_zookeeper, until
from watchkeeper import simulate
from watchkeeper.calibrating import throughput
from watchkeeper.cli import run_command
from watchkeeper.measuring import simulated
from watchkeeper.profiles import profile_of

TINY = Sizes(20, 60, 12, 3, 20, 3, (10,), 10, 3, 10, 4)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--quick` measure hardly anything."""
    monkeypatch.setattr("watchkeeper.calibrating.QUICK", TINY)


def calibrate(*arguments: str) -> int:
    """Measure by the command."""
    return run_command(["calibrate", *arguments, "--quick"])


def client(zookeeper: Ensemble) -> KazooClient:
    """A client that is connected."""
    made = KazooClient(zookeeper.hosts)
    made.start()
    return made


@pytest.fixture
def other(zookeeper: Ensemble) -> Any:
    """Somebody else who uses this ZooKeeper."""
    made = client(zookeeper)
    yield made
    made.stop()
    made.close()


def tree(other: KazooClient, path: str = "/") -> list[str]:
    """Every znode but ZooKeeper's own."""
    found = []
    try:
        names = other.get_children(path)
    except NoNodeError:  # it went meanwhile
        return []
    for name in names:
        below = f"{path.rstrip('/')}/{name}"
        if below != "/zookeeper":
            found += [below, *tree(other, below)]
    return sorted(found)


def sessions(zookeeper: Ensemble) -> int:
    """How many connections there are."""
    return sum("queued=" in line for line in zookeeper.servers[0].ask("cons").splitlines())


# --- an embedded one -------------------------------------------------------------------


def test_an_embedded_zookeeper_is_measured_and_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nothing_left_behind: None
) -> None:
    """The file holds what was measured; a scenario runs with what follows from it."""
    skip_without_zookeeper()
    path = tmp_path / "here.yaml"

    assert calibrate("--out", str(path), "--json") == 0

    said = json.loads(capsys.readouterr().out)
    section = load_profile(path).zookeeper
    assert section is not None
    assert section.measured is not None
    assert said["digest"] == profile_of(path).digest
    assert section.measured.where == "embedded"
    assert section.measured.version.startswith("3.9")
    assert section.measured.round_trips["read"].number == QUICK.singles
    assert section.measured.expiry.number == QUICK.sessions
    assert all(us > 0 for _, us in section.measured.round_trips["write"].quantiles)
    assert "election" in section.defaults
    assert set(section.measured.batches) == {
        *("pipelined read", "pipelined write", "multi of 10", "multi of 100"),
        *("unwatched crowd", "watched crowd"),
    }
    result = simulate("consumer-crash", profile=path)
    assert result.holds, result
    again = simulated(profile_of(path).latencies, servers=1, tick_us=500_000, sizes=TINY)
    read = dict(section.measured.round_trips["read"].quantiles)
    assert read[10] / 2 < again.round_trips["read"].median < read[90] * 2


def test_an_ensemble_of_three_is_measured(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str], nothing_left_behind: None
) -> None:
    """Each of its servers is asked."""
    skip_without_zookeeper()
    path = tmp_path / "three.yaml"

    assert calibrate("--servers", "3", "--out", str(path)) == 0

    section = load_profile(path).zookeeper
    assert section is not None
    assert section.measured is not None
    assert section.measured.servers == 3
    assert section.measured.round_trips["read"].number == TINY.singles
    said = capsys.readouterr().out
    assert "embedded, 3 servers, tick 500 ms" in said
    assert "not measured, and as ever: reconnect" in said


# --- somebody's ------------------------------------------------------------------------


def test_nothing_is_left_on_somebodys_zookeeper(
    zookeeper: Ensemble, other: KazooClient, tmp_path: Path, tiny: None
) -> None:
    """Neither at the root nor below a chroot, and what stood there stands as it did."""
    other.ensure_path("/kafka/brokers")
    before = tree(other)

    for place in (zookeeper.hosts, f"{zookeeper.hosts}/kafka"):
        path = tmp_path / "there.yaml"
        assert calibrate(place, "--out", str(path)) == 0
        section = load_profile(path).zookeeper
        assert section is not None
        assert section.measured is not None
        assert section.measured.where == place
        assert section.measured.session_timeout_us == 1_000_000
        assert tree(other) == before
    assert sessions(zookeeper) == 1 + 1  # `other`, and the connection that asks


def test_rights_are_shown(
    zookeeper: Ensemble,
    other: KazooClient,
    tmp_path: Path,
    tiny: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without them, it is said what is needed."""
    other.create("/closed", acl=[make_digest_acl("me", "secret", all=True)])
    place = f"{zookeeper.hosts}/closed"
    path = tmp_path / "closed.yaml"

    assert calibrate(place, "--out", str(path)) == 4
    assert (
        "may not be looked at by this client; give its credentials by --auth"
        in capsys.readouterr().err
    )
    assert calibrate(place, "--out", str(path), "--auth", "digest:me:secret") == 0
    assert "secret" not in path.read_text()
    other.add_auth("digest", "me:secret")
    assert other.get_children("/closed") == []
    other.delete("/closed")


def test_a_chroot_that_is_not_there_is_not_made(
    zookeeper: Ensemble, other: KazooClient, tiny: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that was mistyped leaves nothing."""
    before = tree(other)
    assert calibrate(f"{zookeeper.hosts}/none") == 4
    assert "there is no znode /none" in capsys.readouterr().err
    assert tree(other) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_cleans_up(
    zookeeper: Ensemble, other: KazooClient, tmp_path: Path, number: int
) -> None:
    """No znode, no process, no file."""
    before, processes = tree(other), descendants()
    command = [sys.executable, "-m", "watchkeeper", "calibrate", zookeeper.hosts]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    started = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    until(lambda: any("/asker-0" in path for path in tree(other)), 60)

    started.send_signal(number)
    _, said = started.communicate(timeout=30)

    assert (started.returncode, said.strip()) == (2, "interrupted")
    assert tree(other) == before
    assert os.listdir(tmp_path) == []
    until(lambda: descendants() <= processes)


# --- what is said ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["localhost:1", "--auth", "me"], "--auth is written scheme:credential"),
        (["/kafka"], "expected addresses as in one:2181"),
        (["localhost:1", "--out", "/no/such/folder/p.yaml"], "there is no folder /no/such"),
    ],
)
def test_what_is_not_understood_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured."""
    assert calibrate(*arguments) == 4
    assert said in capsys.readouterr().err


def test_operations_a_second() -> None:
    """Of a batch, by its median."""
    found = simulated(servers=1, tick_us=500_000, sizes=TINY)

    rates = throughput(found)
    assert set(rates) == {"pipelined read", "pipelined write", "multi of 10"}
    assert rates["pipelined read"] == 20 * 10**6 // found.batches["pipelined read"].median
