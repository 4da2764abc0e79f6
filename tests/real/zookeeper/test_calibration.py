"""A live ZooKeeper is measured, and a scenario is simulated with the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.support.simulated_zookeeper import simulated
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import make_digest_acl

from tests import HOME
from tests.support.live_zookeeper import TICK_MS, descendants, skip_without_zookeeper, until
from tests.support.patience import PATIENCE_S
from watchkeeper import simulate
from watchkeeper.api.profile import profile_of
from watchkeeper.cli.main import run_command
from watchkeeper.model.calibration.probe_program import QUICK, Sizes
from watchkeeper.operate.calibrate import throughput
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.scenarios.profiles.profile import load_profile

TINY = Sizes(20, 60, 12, 3, 20, 3, (10,), 10, 3, 10, 4)


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(needs_zookeeper: None) -> Iterator[Ensemble]:
    """Tests here count sessions, compare the whole tree, and wait until idle sessions expire."""
    with Ensemble(settings=Settings(tick_ms=TICK_MS)) as ensemble:
        yield ensemble


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `--quick` measure as little as possible."""
    monkeypatch.setattr("watchkeeper.operate.calibrate.QUICK", TINY)


def calibrate(*arguments: str) -> int:
    """Measure with the command."""
    return run_command(["calibrate", *arguments, "--quick"])


def client(zookeeper: Ensemble) -> KazooClient:
    """A connected client."""
    made = KazooClient(zookeeper.hosts)
    made.start()
    return made


@pytest.fixture
def watching_client(zookeeper: Ensemble) -> Any:
    """Another user of this ZooKeeper."""
    made = client(zookeeper)
    yield made
    made.stop()
    made.close()


def tree(watching_client: KazooClient, path: str = "/") -> list[str]:
    """Every znode except ZooKeeper's own."""
    found = []
    try:
        names = watching_client.get_children(path)
    except NoNodeError:  # it went meanwhile
        return []
    for name in names:
        below = f"{path.rstrip('/')}/{name}"
        if below != "/zookeeper":
            found += [below, *tree(watching_client, below)]
    return sorted(found)


def sessions(zookeeper: Ensemble) -> int:
    """The number of connections."""
    return sum(
        "queued=" in line
        for line in zookeeper.servers[0].four_letter_word("cons", PATIENCE_S).splitlines()
    )


# --- an embedded one -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zookeeper", "where"),
    [
        pytest.param("java", "embedded", marks=pytest.mark.slow),
        ("python", "embedded, in Python"),
    ],
)
def test_an_embedded_zookeeper_is_measured_and_simulated(
    zookeeper: str,
    where: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    nothing_left_behind: None,
) -> None:
    """The file has the measured values; a scenario runs with what follows from them."""
    if zookeeper == "java":
        skip_without_zookeeper()
    path = tmp_path / "here.yaml"

    assert calibrate("--zookeeper", zookeeper, "--out", str(path), "--json") == 0

    output = json.loads(capsys.readouterr().out)
    section = load_profile(path).zookeeper
    assert section is not None
    assert section.measured is not None
    assert output["digest"] == profile_of(path).digest
    assert section.measured.where == where
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
    latencies = profile_of(path).latencies
    again = simulated(latencies, servers=1, tick_us=500_000, sizes=TINY)
    assert again.round_trips["read"].median > latencies.read_us


@pytest.mark.slow
def test_an_ensemble_of_three_is_measured(
    tmp_path: Path, tiny: None, capsys: pytest.CaptureFixture[str], nothing_left_behind: None
) -> None:
    """Each of its servers is measured."""
    skip_without_zookeeper()
    path = tmp_path / "three.yaml"

    assert calibrate("--servers", "3", "--out", str(path)) == 0

    section = load_profile(path).zookeeper
    assert section is not None
    assert section.measured is not None
    assert section.measured.servers == 3
    assert section.measured.round_trips["read"].number == TINY.singles
    output = capsys.readouterr().out
    assert "embedded, 3 servers, tick 500 ms" in output
    assert "not measured, and as ever: reconnect" in output


# --- an external one --------------------------------------------------------------------


def test_nothing_is_left_on_an_external_zookeeper(
    zookeeper: Ensemble, watching_client: KazooClient, tmp_path: Path, tiny: None
) -> None:
    """Neither at the root nor below a chroot, and the other znodes are unchanged."""
    watching_client.ensure_path("/kafka/brokers")
    before = tree(watching_client)

    for place in (zookeeper.hosts, f"{zookeeper.hosts}/kafka"):
        path = tmp_path / "there.yaml"
        assert calibrate(place, "--out", str(path)) == 0
        section = load_profile(path).zookeeper
        assert section is not None
        assert section.measured is not None
        assert section.measured.where == place
        assert section.measured.session_timeout_us == 1_000_000
        assert tree(watching_client) == before
    assert sessions(zookeeper) == 1 + 1  # `other`, and the connection that asks


def test_credentials_are_used(
    zookeeper: Ensemble,
    watching_client: KazooClient,
    tmp_path: Path,
    tiny: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without them, the message says what is needed."""
    watching_client.create("/closed", acl=[make_digest_acl("me", "secret", all=True)])
    place = f"{zookeeper.hosts}/closed"
    path = tmp_path / "closed.yaml"

    assert calibrate(place, "--out", str(path)) == 4
    assert (
        "may not be looked at by this client; give its credentials by --auth"
        in capsys.readouterr().err
    )
    assert calibrate(place, "--out", str(path), "--auth", "digest:me:secret") == 0
    assert "secret" not in path.read_text()
    watching_client.add_auth("digest", "me:secret")
    assert watching_client.get_children("/closed") == []
    watching_client.delete("/closed")


def test_a_missing_chroot_is_not_created(
    zookeeper: Ensemble,
    watching_client: KazooClient,
    tiny: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistyped name creates nothing."""
    before = tree(watching_client)
    assert calibrate(f"{zookeeper.hosts}/none") == 4
    assert "has no znode /none" in capsys.readouterr().err
    assert tree(watching_client) == before


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_measurement_cleans_up(
    zookeeper: Ensemble, watching_client: KazooClient, tmp_path: Path, number: int
) -> None:
    """No znode, no process, no file."""
    before, processes = tree(watching_client), descendants()
    command = [sys.executable, "-m", "watchkeeper", "calibrate", zookeeper.hosts]
    environment = {**os.environ, "PYTHONPATH": str(HOME / "src")}
    started = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    until(lambda: any("/asker-0" in path for path in tree(watching_client)))

    started.send_signal(number)
    _, errors = started.communicate(timeout=PATIENCE_S)

    assert (started.returncode, errors.strip()) == (2, "interrupted")
    assert tree(watching_client) == before
    assert os.listdir(tmp_path) == []
    until(lambda: descendants() <= processes)


# --- what is said ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["localhost:1", "--auth", "me"], "--auth is written scheme:credential"),
        (["/kafka"], "expected addresses as in one:2181"),
        (["localhost:1", "--out", "/no/such/folder/p.yaml"], "there is no folder /no/such"),
    ],
)
def test_invalid_arguments_are_reported(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured."""
    assert calibrate(*arguments) == 4
    assert message in capsys.readouterr().err


def test_operations_per_second() -> None:
    """Of a batch, by its median."""
    found = simulated(servers=1, tick_us=500_000, sizes=TINY)

    rates = throughput(found)
    assert set(rates) == {"pipelined read", "pipelined write", "multi of 10"}
    assert rates["pipelined read"] == 20 * 10**6 // found.batches["pipelined read"].median
