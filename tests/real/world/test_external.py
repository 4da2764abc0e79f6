"""Live runs on an external ZooKeeper: the same verdicts, and nothing left there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create
from kazoo.security import make_digest_acl

from tests import HOME, SOURCE
from tests.real.world.test_runs import scenario
from tests.support.live.tls_front import CERTIFICATE, TlsFront
from tests.support.live_zookeeper import (
    LONG_MS,
    PS,
    SETTINGS,
    connected,
    descendants,
    disconnect,
    is_there,
    skip_without_zookeeper,
    until,
)
from tests.support.patience import PATIENCE_S
from watchkeeper.api.folder import held
from watchkeeper.cli.main import run_command
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import parse
from watchkeeper.model.wire.creates import EPHEMERAL
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.real.access import Access
from watchkeeper.real.proxy.tap import AnsweredRequest
from watchkeeper.real.trace.write_events import CommittedEvent
from watchkeeper.real.world.external import ExternalZooKeeper
from watchkeeper.real.world.observer import Deletion, Observer
from watchkeeper.real.zookeepers.committed import committed_by
from watchkeeper.real.zookeepers.ensemble import Ensemble
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
HERE = ("--allow-faults-on", "127.0.0.1")
ADMISSION = "digest:keeper:secret"
NODE_EXISTS = -110
VERDICTS = (0, 1, 2)
"""The exit codes of a run that was judged: holds, violated, unknown."""


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(either_zookeeper: Ensemble) -> Ensemble:
    """Tests here read the log of the server and its whole tree."""
    return either_zookeeper


@pytest.fixture
def operator(zookeeper: Ensemble) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


def ran(folder: Path, fields: Mapping[str, Any], hosts: str, *options: str) -> int:
    """Run a scenario live on this ZooKeeper; return the exit code."""
    file = folder / "short.yaml"
    file.write_text(yaml.safe_dump(dict(fields)))
    command = ["run", str(file), "--world", "live", "--zookeeper", hosts, "--no-pictures"]
    return run_command([*command, "--out", str(folder / "runs"), *options])


def rows_of(folder: Path) -> list[Any]:
    (path,) = {path.resolve() for path in (folder / "runs").glob("*/trace.jsonl")}
    with path.open("rb") as file:
        return list(parse(file, name=str(path)))


def test_the_reconstructed_writes_are_those_in_the_log(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """The proxy and the observer know every write, including lost ones, and every end.

    The log of this server can be read, so it confirms the result. Only a write whose reply
    reached no proxy is in the log alone: one that was under way when the network was cut, or
    when the run and its trace ended. The sessions are short, so some may expire by themselves;
    that changes the verdict at most.
    """
    faults = (
        {"on": {"node": "group/1", "purpose": "claim"}, "lose": "reply"},
        {"at": "3s", "expire": "group/0"},
        {"at": "6s", "crash": "group/1"},
        {"at": "8s", "partition": "group/0", "for": "2s"},
    )
    assert ran(tmp_path, scenario(*faults, session_s=1), zookeeper.hosts, *HERE) in VERDICTS

    rows = rows_of(tmp_path)
    answered = {row.session: row.zxid for row in rows if row.kind == EventKind.RESPONSE}
    seen = [row for row in rows if row.node == "zookeeper" and row.session]
    seen = [
        row for row in seen if row.kind not in (EventKind.SESSION_MOVED, EventKind.LEADER_ELECTED)
    ]
    logged = list(committed_by(zookeeper, root_in(zookeeper), time.monotonic_ns()))
    assert any(row.kind == EventKind.SESSION_EXPIRED for row in seen)
    for session in {row.session for row in seen}:
        events = kinds_and_changes([row for row in seen if row.session == session])
        for write in [write for write in logged if write.session == session]:
            if events[:1] == kinds_and_changes([write]):
                del events[0]
            else:
                assert write.zxid > answered.get(session, 0), (write, events)
        assert events == []
    assert operator.get_children("/") == ["zookeeper"]


def outside() -> ExternalZooKeeper:
    """An external ZooKeeper that is never connected to: a test says what was seen of it."""
    return ExternalZooKeeper(Access("127.0.0.1:1"), "zookeeper")


def answered(zookeeper: ExternalZooKeeper, zxid: int, session: int, at_us: int) -> None:
    """A session has claimed `/claim`, and the reply was read at this time."""
    request = Create(f"{zookeeper.root}/claim", b"", [], EPHEMERAL).serialize()
    zookeeper.tap.seen.append(
        AnsweredRequest(session, zxid, 0, 1000 * at_us, Opcode.CREATE, bytes(request), b"", 0)
    )


def test_a_late_reply_delays_no_later_write() -> None:
    """Its client may act at once; the trace must not show that before the write."""
    zookeeper = outside()
    zookeeper.tap.seen = [
        AnsweredRequest(
            session, session, 0, 1000 * answered_us, Opcode.CREATE, b"", b"", NODE_EXISTS
        )
        for session, answered_us in [(3, 900), (1, 300), (2, 200)]
    ]

    found = [(event.zxid, event.at_us) for event in zookeeper.committed(0)]

    assert found == [(1, 200), (2, 200), (3, 900)]


def test_an_end_seen_late_is_that_of_the_earlier_owner() -> None:
    """The next owner's claim is answered before the observer sees the first one vanish."""
    zookeeper = outside()
    answered(zookeeper, 1, session=7, at_us=100)
    answered(zookeeper, 3, session=8, at_us=500)
    zookeeper.observer.deletions.append(Deletion(900_000, "/claim", 2))

    found = [
        (event.zxid, event.session, event.kind, event.at_us) for event in zookeeper.committed(0)
    ]

    assert found == [
        (1, 7, EventKind.APPLIED, 100),
        (2, 7, EventKind.SESSION_EXPIRED, 500),
        (3, 8, EventKind.APPLIED, 500),
    ]


def test_a_deletion_that_a_request_made_ends_no_session() -> None:
    """However late the observer sees it: the zxid is that of the request."""
    zookeeper = outside()
    answered(zookeeper, 1, session=7, at_us=100)
    zookeeper.tap.seen.append(
        AnsweredRequest(7, 2, 0, 200_000, Opcode.CLOSE_SESSION, b"", b"", 0)
    )
    answered(zookeeper, 3, session=8, at_us=500)
    zookeeper.observer.deletions.append(Deletion(9_000_000_000, "/claim", 2))

    found = [(event.session, event.kind) for event in zookeeper.committed(0)]

    assert found == [
        (7, EventKind.APPLIED),
        (7, EventKind.SESSION_CLOSED),
        (8, EventKind.APPLIED),
    ]


def test_the_observer_knows_which_write_deleted_a_znode(
    zookeeper: Ensemble, operator: KazooClient
) -> None:
    """By the zxid that the server reports with the event."""
    operator.create("/observed")
    operator.create("/observed/here")
    observer = Observer(Access(zookeeper.hosts), "/observed")
    observer.start()
    operator.delete("/observed/here")
    zxid = operator.last_zxid

    until(lambda: observer.deletions)
    observer.stop()

    assert [(gone.path, gone.zxid) for gone in observer.deletions] == [("/here", zxid)]
    operator.delete("/observed")


def test_a_failed_multi_changes_nothing(zookeeper: Ensemble, operator: KazooClient) -> None:
    """The log contains the parts before the failed one as if they had been applied."""
    operator.ensure_path("/here")
    request = operator.transaction()
    request.create("/here/before", b"")
    request.create("/here/missing/child", b"")
    request.commit()

    logged = list(committed_by(zookeeper, "/here", time.monotonic_ns()))[-1]

    assert (logged.kind, logged.detail) == (EventKind.REFUSED, {"op": "multi"})
    operator.delete("/here")


def root_in(zookeeper: Ensemble) -> str:
    """The root that the run has created last, according to the server."""
    *_, root = (
        path
        for event in committed_by(zookeeper, "", time.monotonic_ns())
        for what, path, *_ in event.detail.get("did", ())
        if what == "created" and path.count("/") == 1 and path.startswith("/watchkeeper-")
    )
    return str(root)


def kinds_and_changes(rows: list[Any] | list[CommittedEvent]) -> list[tuple[str, list[Any]]]:
    """The events of a session, in order.

    To an observer, a session that the nemesis closes looks like an expired one.
    """
    return [
        (row.kind.replace("closed", "expired"), sorted(row.detail.get("did", ()))) for row in rows
    ]


def test_a_run_stays_below_its_chroot(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """What was there before is unchanged, and nothing else is left."""
    operator.ensure_path("/theirs/registry")

    assert ran(tmp_path, scenario(), f"{zookeeper.hosts}/theirs") == 0

    assert operator.get_children("/") == ["theirs", "zookeeper"]
    assert operator.get_children("/theirs") == ["registry"]
    operator.delete("/theirs", recursive=True)


def test_faults_need_permission_by_host_name(
    tmp_path: Path,
    zookeeper: Ensemble,
    operator: KazooClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without permission nothing happens; with it the plan is printed before it begins."""
    fields = scenario({"at": "1s", "crash": "group/0"}, settle="2s")

    assert ran(tmp_path, fields, zookeeper.hosts) == 4
    assert "add --allow-faults-on 127.0.0.1" in capsys.readouterr().err
    assert ran(tmp_path, fields, zookeeper.hosts, "--allow-faults-on", "elsewhere") == 4
    capsys.readouterr()
    ran(tmp_path, fields, zookeeper.hosts, *HERE)
    error_lines = capsys.readouterr().err.splitlines()
    assert error_lines[1].split() == ["1s", "crash", "group/0"]
    assert error_lines[2].startswith("  create ")
    assert operator.get_children("/") == ["zookeeper"]


def test_external_servers_are_never_touched(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """No permission allows that."""
    fields = scenario({"at": "1s", "crash": "zookeeper/1"})

    assert ran(tmp_path, fields, zookeeper.hosts, *HERE) == 4
    assert "not ours to stop" in capsys.readouterr().err


def test_a_file_ends_the_run_at_once(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """Later faults are not injected, and the verdict is unknown."""
    fields = scenario(
        {"at": "2s", "pause": "group/0", "for": "60s"},
        {"at": "40s", "crash": "group/1"},
        settle="60s",
    )
    abort = tmp_path / "enough"

    with doing(abort.touch, once=lambda: stopped_below(os.getpid())):
        code = ran(tmp_path, fields, zookeeper.hosts, *HERE, "--abort-file", str(abort))

    assert code == 2
    faults = [row.detail["verb"] for row in rows_of(tmp_path) if row.kind == EventKind.FAULT]
    assert faults == ["pause"]
    assert operator.get_children("/") == ["zookeeper"]
    assert ran(tmp_path, fields, zookeeper.hosts, *HERE, "--abort-file", str(abort)) == 4


def test_a_session_timeout_out_of_bounds_is_refused(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time limit of progress would differ from the scenario's."""
    fields = scenario()
    fields["groups"]["group"]["config"]["zookeeper.session.timeout.ms"] = 2 * LONG_MS

    assert ran(tmp_path, fields, zookeeper.hosts) == 4
    assert f"grants 400 to {LONG_MS} ms" in capsys.readouterr().err


def test_credentials_and_certificates_give_access(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """With TLS, below a chroot that is open to one user only, with a lost reply."""
    acl = make_digest_acl("keeper", "secret", all=True)
    operator.create("/closed", acl=[acl])
    fields = scenario({"on": {"node": "group/1", "purpose": "claim"}, "lose": "reply"})
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


@pytest.mark.parametrize(
    "server",
    [Implementation.PYTHON, pytest.param(Implementation.JAVA, marks=pytest.mark.slow)],
)
def test_the_trace_survives_a_zookeeper_that_goes_down(
    server: Implementation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run does not wait for ever, and its trace is kept."""
    if server is Implementation.JAVA:
        skip_without_zookeeper()
    with ensemble_of(server, settings=SETTINGS) as doomed:
        operator = connected(doomed.hosts)
        with doing(doomed.servers[0].kill, once=lambda: consumers_below(operator)):
            code = ran(tmp_path, scenario(settle="4s"), doomed.hosts)
        disconnect(operator)
    assert code in (1, 2)
    assert "remove it by hand" in capsys.readouterr().err
    assert any(row.kind == EventKind.LEADER_LOST for row in rows_of(tmp_path))


def test_a_chroot_has_to_exist(
    tmp_path: Path,
    zookeeper: Ensemble,
    operator: KazooClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistyped name is not created on an external server."""
    assert ran(tmp_path, scenario(), f"{zookeeper.hosts}/mistyped") == 4
    assert "there is no znode /mistyped" in capsys.readouterr().err
    assert operator.get_children("/") == ["zookeeper"]


def test_a_second_live_run_is_kept_out_of_a_folder(
    tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise one trace would overwrite the other, and one file would end both."""
    home = tmp_path / "runs" / "short-hardened-live-0"
    home.mkdir(parents=True)

    with held(home):
        assert ran(tmp_path, scenario(), zookeeper.hosts) == 4

    assert "another live run is under way" in capsys.readouterr().err


@pytest.mark.parametrize(
    "what", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_ends_cleanly(
    what: signal.Signals, tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """A verdict on what was seen, and nothing left on the server."""
    with started(tmp_path, scenario(settle="60s"), zookeeper.hosts) as process:
        until(lambda: consumers_below(operator))
        process.send_signal(what)

        assert process.wait(PATIENCE_S) == 2

    assert operator.get_children("/") == ["zookeeper"]
    assert rows_of(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process that stands still")
def test_stopped_members_end_with_a_killed_run(
    tmp_path: Path, zookeeper: Ensemble, operator: KazooClient
) -> None:
    """A stopped process cannot notice that its parent is gone."""
    fields = scenario({"at": "2s", "pause": "group/0", "for": "60s"}, settle="60s")
    with started(tmp_path, fields, zookeeper.hosts, *HERE) as process:
        until(lambda: stopped_below(process.pid))
        members = descendants(process.pid)
        assert members
        process.kill()
        process.wait(PATIENCE_S)
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
        process.wait(PATIENCE_S)


@contextmanager
def doing(effect: Callable[[], object], *, once: Callable[[], object]) -> Iterator[None]:
    """Meanwhile, in a thread, something is done once something holds."""

    def wait() -> None:
        until(once)
        effect()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join(PATIENCE_S)


def consumers_below(operator: KazooClient) -> bool:
    """Whether a member of a run has registered."""
    roots = [name for name in operator.get_children("/") if name.startswith("watchkeeper-")]
    return any(operator.exists(f"/{root}/consumers/group/ids") for root in roots)


def stopped_below(pid: int) -> bool:
    """Whether one of them is stopped."""
    done = subprocess.run([PS, "-A", "-o", "ppid=,stat="], capture_output=True, text=True)
    states = [line.split() for line in done.stdout.splitlines()]
    return any(int(parent) == pid and state.startswith("T") for parent, state in states)


def test_modules_in_the_users_folder_are_not_imported(
    tmp_path: Path, zookeeper: Ensemble
) -> None:
    """Members import the installed package, wherever the command is called."""
    (tmp_path / "model.py").write_text("raise SystemExit('not this one')")
    file = tmp_path / "short.yaml"
    file.write_text(yaml.safe_dump(scenario()))
    command = [sys.executable, "-P", "-m", "watchkeeper", "run", str(file), "--world", "live"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}

    done = subprocess.run(
        [*command, "--zookeeper", zookeeper.hosts, "--no-pictures", "--all"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert "a member began to fetch" in " ".join(done.stdout.split()), done.stderr


def test_an_unreachable_zookeeper_is_reported_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and what to check."""
    assert ran(tmp_path, scenario(), "127.0.0.1:1") == 4
    assert "no ZooKeeper answers at 127.0.0.1:1" in capsys.readouterr().err
