"""Live runs on a ZooKeeper that runs already: the same verdicts, and nothing left there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from model.trace import parse
from real.ensemble import Ensemble
from real.ledger import Agreed
from real.settings import Settings
from real.transactions import agreed_upon, all_transactions
from tests.live import PS, descendants, is_there, until
from tests.test_house import HOME
from tests.test_live_world import scenario
from tests.tls_front import CERTIFICATE, TlsFront
from watchkeeper.cli import run_command
from watchkeeper.folder import held

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
HERE = ("--allow-faults-on", "127.0.0.1")
ADMISSION = "digest:keeper:secret"


@pytest.fixture
def operator(zookeeper: Ensemble) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


def ran(folder: Path, fields: Mapping[str, Any], hosts: str, *options: str) -> int:
    """Run a scenario live on this ZooKeeper; the exit code."""
    file = folder / "short.yaml"
    file.write_text(yaml.safe_dump(dict(fields)))
    command = ["run", str(file), "--world", "live", "--zookeeper", hosts, "--no-pictures"]
    return run_command([*command, "--out", str(folder / "runs"), *options])


def rows_of(folder: Path) -> list[Any]:
    (path,) = (folder / "runs").glob("*/trace.jsonl")
    with path.open("rb") as file:
        return list(parse(file, name=str(path)))


def test_what_was_put_together_is_what_the_server_has_logged(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """The proxy and the observer know of every write, the lost ones too, and of every end.

    This server's log can be read after all, so it tells whether they were right.
    """
    faults = (
        {"on": {"node": "group/1", "asks": "claim"}, "lose": "reply"},
        {"at": "3s", "expire": "group/0"},
        {"at": "6s", "crash": "group/1"},
        {"at": "8s", "partition": "group/0", "for": "2s"},
    )
    assert ran(tmp_path, scenario(*faults), zookeeper.hosts, *HERE) == 0

    seen = [row for row in rows_of(tmp_path) if row.node == "zookeeper" and row.session]
    seen = [row for row in seen if row.kind not in ("session moved", "leads")]
    members = {row.session for row in seen}
    folders = [zookeeper.servers[0].log_folder]
    logged = [
        one
        for one in agreed_upon(folders, root_in(folders), time.monotonic_ns())
        if one.session in members
    ]
    ends = sum(row.kind == "session expired" for row in seen)
    assert ends >= 2
    known = told(logged)
    for session, events in told(seen).items():
        assert events == known[session][: len(events)]
        assert [kind for kind, _ in known[session][len(events) :]] in ([], ["session expired"])
    assert operator.get_children("/") == ["zookeeper"]


def test_a_multi_that_failed_did_nothing(zookeeper: Ensemble, operator: KazooClient) -> None:
    """The log has what stood before the part at fault, as if it had been done."""
    operator.ensure_path("/here")
    request = operator.transaction()
    request.create("/here/before", b"")
    request.create("/here/missing/child", b"")
    request.commit()

    folders = [zookeeper.servers[0].log_folder]
    logged = list(agreed_upon(folders, "/here", time.monotonic_ns()))[-1]

    assert (logged.kind, logged.detail) == ("refused", {"op": "multi"})
    operator.delete("/here")


def root_in(folders: list[Path]) -> str:
    """The root that the run has made, by the log."""
    for one in reversed(all_transactions(folders)):
        at = one.body.find(b"/watchkeeper-")
        if at >= 0:
            return one.body[at : at + len("/watchkeeper-01234567")].decode()
    raise AssertionError("no run has made a root")


def told(rows: list[Any] | list[Agreed]) -> dict[int, list[tuple[str, list[Any]]]]:
    """Session -> what happened to it, in order; some end when the run is over.

    A session that the nemesis closes looks like one that expired to whoever only watches.
    """
    found: dict[int, list[tuple[str, list[Any]]]] = {}
    for row in rows:
        did = sorted(row.detail.get("did", ()))
        kind = row.kind.replace("closed", "expired")
        found.setdefault(row.session, []).append((kind, did))
    return found


def test_a_run_stays_below_its_chroot(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """What stood there before stands there afterwards, and nothing else."""
    operator.ensure_path("/theirs/registry")

    assert ran(tmp_path, scenario(), f"{zookeeper.hosts}/theirs") == 0

    assert operator.get_children("/") == ["theirs", "zookeeper"]
    assert operator.get_children("/theirs") == ["registry"]
    operator.delete("/theirs", recursive=True)


def test_faults_need_leave_by_the_name_of_the_host(
    tmp_path: Path,
    zookeeper: Ensemble,
    operator: KazooClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without it nothing is done at all; with it the plan is printed before it begins."""
    fields = scenario({"at": "1s", "crash": "group/0"}, settle="2s")

    assert ran(tmp_path, fields, zookeeper.hosts) == 4
    assert "add --allow-faults-on 127.0.0.1" in capsys.readouterr().err
    assert ran(tmp_path, fields, zookeeper.hosts, "--allow-faults-on", "elsewhere") == 4
    capsys.readouterr()
    ran(tmp_path, fields, zookeeper.hosts, *HERE)
    said = capsys.readouterr().err.splitlines()
    assert said[1].split() == ["1s", "crash", "group/0"]
    assert said[2].startswith("  create ")
    assert operator.get_children("/") == ["zookeeper"]


def test_servers_of_others_are_never_touched(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no leave for that."""
    fields = scenario({"at": "1s", "crash": "zookeeper/1"})

    assert ran(tmp_path, fields, zookeeper.hosts, *HERE) == 4
    assert "not ours to stop" in capsys.readouterr().err


def test_a_file_ends_the_run_at_once(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """What was to come does not come, and the verdict is unknown."""
    fields = scenario(
        {"at": "2s", "pause": "group/0", "for": "60s"},
        {"at": "40s", "crash": "group/1"},
        settle="60s",
    )
    abort = tmp_path / "enough"
    timer = threading.Timer(12.0, abort.touch)
    timer.start()
    began = monotonic()

    code = ran(tmp_path, fields, zookeeper.hosts, *HERE, "--abort-file", str(abort))

    timer.join()
    assert code == 2
    assert monotonic() - began < 50
    faults = [row.detail["verb"] for row in rows_of(tmp_path) if row.kind == "fault"]
    assert faults == ["pause"]
    assert operator.get_children("/") == ["zookeeper"]
    assert ran(tmp_path, fields, zookeeper.hosts, *HERE, "--abort-file", str(abort)) == 4


def test_a_session_timeout_that_is_not_granted_is_refused(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bound of progress would be another one than the scenario says."""
    fields = scenario()
    fields["groups"]["group"]["config"]["zookeeper.session.timeout.ms"] = 5000

    assert ran(tmp_path, fields, zookeeper.hosts) == 4
    assert "grants 400 to 4000 ms" in capsys.readouterr().err


def test_credentials_and_certificates_let_a_run_in(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """By TLS, below a chroot that is open to one user alone, with a reply lost on the way."""
    acl = make_digest_acl("keeper", "secret", all=True)
    operator.create("/closed", acl=[acl])
    fields = scenario({"on": {"node": "group/1", "asks": "claim"}, "lose": "reply"})
    with TlsFront(zookeeper.addresses[0]) as front:
        place = f"{front.address}/closed"
        by_tls = ("--tls-ca", str(CERTIFICATE), *HERE)

        assert ran(tmp_path, fields, place, *by_tls) == 4
        assert "cannot be made" in capsys.readouterr().err
        assert ran(tmp_path, fields, place, *by_tls, "--auth", ADMISSION, "--json") == 0
        assert front.connections > 4

    verdict = json.loads(capsys.readouterr().out)
    assert verdict["command"].endswith(f"--auth digest:... --tls-ca {CERTIFICATE}")
    operator.add_auth(*ADMISSION.split(":", 1))
    assert operator.get_children("/closed") == []
    operator.delete("/closed")


def test_a_zookeeper_that_goes_down_leaves_the_trace(
    tmp_path: Path, needs_zookeeper: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody waits for it for ever, and what was seen is kept."""
    with Ensemble(settings=Settings(tick_ms=200)) as doomed:
        timer = threading.Timer(8.0, doomed.servers[0].kill)
        timer.start()
        began = monotonic()

        code = ran(tmp_path, scenario(settle="12s"), doomed.hosts)

        timer.join()
    assert code in (1, 2)
    assert monotonic() - began < 60
    assert "remove it by hand" in capsys.readouterr().err
    assert any(row.kind == "leader lost" for row in rows_of(tmp_path))


def test_a_chroot_has_to_be_there(
    tmp_path: Path,
    zookeeper: Ensemble,
    operator: KazooClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name that was mistyped is not made on somebody else's server."""
    assert ran(tmp_path, scenario(), f"{zookeeper.hosts}/mistyped") == 4
    assert "there is no znode /mistyped" in capsys.readouterr().err
    assert operator.get_children("/") == ["zookeeper"]


def test_a_second_live_run_is_kept_out_of_a_folder(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else one trace would overwrite the other, and one file would end both."""
    home = tmp_path / "runs" / "short-hardened-live-0"
    home.mkdir(parents=True)

    with held(home):
        assert ran(tmp_path, scenario(), zookeeper.hosts) == 4

    assert "another live run is under way" in capsys.readouterr().err


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_is_obeyed_in_good_order(
    what: signal.Signals, tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """A verdict of what was seen, and nothing left on the server."""
    with started(tmp_path, scenario(settle="60s"), zookeeper.hosts) as process:
        until(lambda: consumers_below(operator), 30)
        process.send_signal(what)

        assert process.wait(30) == 2

    assert operator.get_children("/") == ["zookeeper"]
    assert rows_of(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process that stands still")
def test_members_go_with_a_run_that_is_killed_even_if_they_stand_still(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """A process that was stopped cannot see that nobody is there any longer."""
    fields = scenario({"at": "2s", "pause": "group/0", "for": "60s"}, settle="60s")
    with started(tmp_path, fields, zookeeper.hosts, *HERE) as process:
        until(lambda: stopped_below(process.pid), 30)
        members = descendants(process.pid)
        assert members
        process.kill()
        process.wait()
        until(lambda: not any(map(is_there, members)))

    for name in operator.get_children("/"):
        if name != "zookeeper":
            operator.delete(f"/{name}", recursive=True)


@contextmanager
def started(
    folder: Path, fields: Mapping[str, Any], hosts: str, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process of its own."""
    file = folder / "short.yaml"
    file.write_text(yaml.safe_dump(dict(fields)))
    command = [sys.executable, "-m", "watchkeeper", "run", str(file), "--world", "live"]
    command += ["--zookeeper", hosts, "--no-pictures", "--out", str(folder / "runs"), *options]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(command, cwd=HOME, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def consumers_below(operator: KazooClient) -> bool:
    """Whether a member of a run has registered."""
    roots = [name for name in operator.get_children("/") if name.startswith("watchkeeper-")]
    return any(operator.exists(f"/{root}/consumers/group/ids") for root in roots)


def stopped_below(pid: int) -> bool:
    """Whether one of them stands still."""
    done = subprocess.run([PS, "-A", "-o", "ppid=,stat="], capture_output=True, text=True)
    states = [line.split() for line in done.stdout.splitlines()]
    return any(int(parent) == pid and state.startswith("T") for parent, state in states)


def test_files_of_the_users_folder_are_not_taken_for_ours(
    tmp_path: Path, zookeeper: Ensemble
) -> None:
    """Members import what is installed, wherever the command is called."""
    (tmp_path / "model.py").write_text("raise SystemExit('not this one')")
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(scenario()))
    command = [sys.executable, "-P", "-m", "watchkeeper", "run", str(file), "--world", "live"]
    environment = {**os.environ, "PYTHONPATH": str(HOME)}

    done = subprocess.run(
        [*command, "--zookeeper", zookeeper.hosts, "--no-pictures"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert "a member began to fetch" in " ".join(done.stdout.split()), done.stderr


def test_nobody_there_is_said_before_anything_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and what to look at."""
    assert ran(tmp_path, scenario(), "127.0.0.1:1") == 4
    assert "no ZooKeeper answers at 127.0.0.1:1" in capsys.readouterr().err
