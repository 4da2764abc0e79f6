"""Live runs on a ZooKeeper that runs already: the same verdicts, and nothing left there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
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
from real.transactions import agreed_upon, all_transactions
from tests.test_live_world import scenario
from tests.tls_front import CERTIFICATE, TlsFront
from watchkeeper.cli import run_command

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
    assert told(seen) == told(logged)[: len(seen)]
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


def told(rows: list[Any] | list[Agreed]) -> list[Any]:
    """What happened to each session, in order; sorted by session, for opening has no zxid.

    A session that the nemesis closes looks like one that expired to whoever only watches.
    """
    told = [
        (row.session, row.kind.replace("closed", "expired"), sorted(row.detail.get("did", ())))
        for row in rows
    ]
    return sorted(told, key=lambda one: one[0])


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
        {"at": "30s", "crash": "group/1"},
        settle="60s",
    )
    abort = tmp_path / "enough"
    timer = threading.Timer(6.0, abort.touch)
    timer.start()
    began = monotonic()

    code = ran(tmp_path, fields, zookeeper.hosts, *HERE, "--abort-file", str(abort))

    timer.join()
    assert code == 2
    assert monotonic() - began < 30
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


def test_nobody_there_is_said_before_anything_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and what to look at."""
    assert ran(tmp_path, scenario(), "127.0.0.1:1") == 4
    assert "no ZooKeeper answers at 127.0.0.1:1" in capsys.readouterr().err
