"""The embedded ZooKeeper: it starts, suffers, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, time

import pytest
from kazoo.client import KazooClient

from real import jars, java, ports
from real.ensemble import Ensemble
from real.guarded import GuardedProcess
from real.moments import agreed, moments_of
from real.ports import free_ports, is_free
from real.problems import EnvironmentProblem
from real.settings import Ports, Settings
from tests import live
from tests.live import OFTEN, TICK_MS, is_there, until

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

QUICK = Settings(tick_ms=TICK_MS)


@pytest.fixture
def client(zookeeper: Ensemble) -> KazooClient:
    """A client of the module's server."""
    client = KazooClient(zookeeper.hosts, timeout=4.0, connection_retry=OFTEN)
    client.start(timeout=10)
    yield client
    client.stop()
    client.close()


def silent_session(server: Ensemble, timeout_ms: int) -> socket.socket:
    """A connection whose session never says anything again."""
    line = socket.create_connection((ports.HOST, server.servers[0].ports.client))
    ask = struct.pack(">iqiqi16s?", 0, 0, timeout_ms, 0, 16, bytes(16), False)
    line.sendall(struct.pack(">i", len(ask)) + ask)
    assert line.recv(64)
    return line


def only_loopback(places: Ports) -> bool:
    """Whether these ports cannot be reached at another address of this machine."""
    for port in places.by_use.values():
        with suppress(OSError), socket.create_connection(("127.0.0.2", port), 0.5):
            return False
    return True


# --- one server ------------------------------------------------------------------------


def test_it_serves_this_machine_alone(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]

    assert server.role == "standalone"
    assert zookeeper.leader is server
    assert zookeeper.hosts == server.address == f"127.0.0.1:{server.ports.client}"
    assert server.ask("ruok") == "imok"
    assert "zk_version\t3.9" in server.ask("mntr")
    assert zookeeper.version.startswith("3.")
    assert only_loopback(server.ports)


def test_session_timeouts_are_bounded_in_ticks(zookeeper: Ensemble) -> None:
    said = zookeeper.servers[0].ask("conf")

    assert f"tickTime={TICK_MS}\n" in said
    assert f"minSessionTimeout={2 * TICK_MS}\n" in said
    assert f"maxSessionTimeout={20 * TICK_MS}\n" in said


def test_data_and_sessions_survive_kill_and_restart(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    server = zookeeper.servers[0]
    client.create("/kept", b"1", ephemeral=True)
    before = client.client_id[0]

    assert server.kill()
    assert server.state == "down"
    assert server.pid is None
    assert server.role is None
    assert not server.kill()
    assert not server.pause()
    server.start()

    until(lambda: client.connected)
    assert client.get("/kept")[0] == b"1"
    assert client.client_id[0] == before


def test_a_restart_keeps_the_port(zookeeper: Ensemble, client: KazooClient) -> None:
    server = zookeeper.servers[0]
    pid = server.pid

    server.restart()

    assert server.state == "running"
    assert server.pid != pid
    until(lambda: client.connected)


def test_a_paused_server_answers_nothing_until_it_goes_on(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]

    assert server.pause()
    assert server.state == "paused"
    assert not server.pause()
    until(lambda: server.ask("ruok", patience_s=0.2) == "")  # its threads stop one by one
    assert server.role is None

    assert server.resume()
    assert not server.resume()
    assert server.ask("ruok") == "imok"


def test_a_paused_server_can_be_stopped(zookeeper: Ensemble) -> None:
    server = zookeeper.servers[0]
    pid = server.pid
    assert pid is not None
    server.pause()

    began = monotonic()
    assert server.stop()

    assert monotonic() - began < 5
    assert not is_there(pid)
    server.start()


# --- the record of sessions ------------------------------------------------------------


def test_the_log_tells_when_sessions_began_and_ended(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    already = len(zookeeper.moments)
    other = KazooClient(zookeeper.hosts, timeout=1.0)
    other.start(timeout=10)
    closed = other.client_id[0]
    other.stop()
    other.close()
    line = silent_session(zookeeper, 500)
    until(lambda: len(zookeeper.moments) >= already + 4)
    line.close()

    opened, gone, opened_too, expired = zookeeper.moments[already:]

    assert (opened.kind, opened.session, opened.timeout_ms) == ("session opened", closed, 1000)
    assert (gone.kind, gone.session) == ("session closed", closed)
    assert (opened_too.kind, opened_too.timeout_ms) == ("session opened", 500)
    assert (expired.kind, expired.session) == ("session expired", opened_too.session)
    assert 500 <= expired.time_ms - opened_too.time_ms <= 500 + TICK_MS + 100
    assert abs(time() * 1000 - expired.time_ms) < 5000
    assert opened.zxid < gone.zxid < opened_too.zxid < expired.zxid


def test_a_moment_bears_the_zxid_of_what_it_removed(
    zookeeper: Ensemble, client: KazooClient
) -> None:
    client.ensure_path("/owners")
    other = KazooClient(zookeeper.hosts, timeout=1.0)
    other.start(timeout=10)
    other.create("/owners/mine", ephemeral=True)
    other.stop()
    other.close()

    assert client.exists("/owners").pzxid == zookeeper.moments[-1].zxid


def test_an_unfinished_record_is_not_read(zookeeper: Ensemble, tmp_path: Path) -> None:
    whole = max(zookeeper.servers[0].log_folder.glob("log.*"), key=lambda one: one.stat().st_size)
    log = whole.read_bytes().rstrip(b"\0")
    (tmp_path / "log.notes").write_bytes(b"not a log")
    (tmp_path / "log.2").write_bytes(b"not a log")
    (tmp_path / "log.1").write_bytes(log)
    known = list(moments_of(tmp_path))

    (tmp_path / "log.1").write_bytes(log[:-3])
    cut = list(moments_of(tmp_path))
    (tmp_path / "log.1").write_bytes(log[:-30] + bytes([log[-30] ^ 1]) + log[-29:])
    spoilt = list(moments_of(tmp_path))

    assert len(known) > len(cut) >= len(spoilt)
    assert cut == known[: len(cut)]


def test_what_one_server_alone_knows_does_not_count(
    zookeeper: Ensemble, client: KazooClient, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "123"]

    shutil.copytree(zookeeper.servers[0].log_folder, folders[0])
    assert agreed(folders) == ()
    shutil.copytree(folders[0], folders[1])

    assert agreed(folders) == tuple(moments_of(folders[1])) != ()


# --- an ensemble -----------------------------------------------------------------------


def test_an_ensemble_loses_its_leader_and_goes_on(needs_zookeeper: None) -> None:
    with Ensemble(3, settings=QUICK) as zookeeper:
        assert sorted(str(server.role) for server in zookeeper.servers) == [
            "follower",
            "follower",
            "leader",
        ]
        assert all(only_loopback(server.ports) for server in zookeeper.servers)
        client = KazooClient(zookeeper.hosts, timeout=2.0)
        client.start(timeout=10)
        client.create("/kept", b"1")
        first = zookeeper.wait_for_leader()

        assert first.kill()
        second = zookeeper.wait_for_leader()
        assert second is not first
        first.start()
        assert first.role == "follower"

        second.pause()
        third = zookeeper.wait_for_leader()
        assert third is not second
        second.resume()
        second.wait_until_it_serves()

        assert client.retry(client.set, "/kept", b"2").version == 1
        session = client.client_id[0]
        client.stop()
        client.close()
        ours = [one.kind for one in zookeeper.moments if one.session == session]
        assert ours == ["session opened", "session closed"]

        third.kill()
        zookeeper.wait_for_leader().kill()
        until(lambda: zookeeper.leader is None)
        with pytest.raises(EnvironmentProblem, match=r"lead within 0\.1 s, but none does"):
            zookeeper.wait_for_leader(0.1)
        places = [port for one in zookeeper.servers for port in one.ports.by_use.values()]
        folder = zookeeper.folder
    assert not folder.exists()
    assert all(is_free(port) for port in places)


def test_a_folder_that_was_given_is_kept(needs_zookeeper: None, tmp_path: Path) -> None:
    zookeeper = Ensemble(settings=QUICK, folder=tmp_path / "kept", name="main/zookeeper")
    zookeeper.stop()

    assert (tmp_path / "kept" / "1" / "zoo.cfg").exists()
    assert zookeeper.server("main/zookeeper/1").state == "down"


# --- nothing outlives its parent -------------------------------------------------------

SERVERS = """
import sys, time
from pathlib import Path
from real.ensemble import Ensemble
from real.settings import Settings
zookeeper = Ensemble(3, settings=Settings(tick_ms=200))
for server in zookeeper.servers:
    server.start(patience_s=None)
zookeeper.servers[1].pause()
processes = [one._process for one in zookeeper.servers]
pids = [pid for process in processes for pid in (process.pid, process._guard.pid)]
Path(sys.argv[1]).write_text(" ".join(map(str, pids)) + f"\\n{zookeeper.folder}\\n")
time.sleep(60)
"""

HELD_OPEN = """
import os, sys, time
from pathlib import Path
from real.guarded import GuardedProcess
process = GuardedProcess(["sleep", "60"], output=Path(os.devnull))
other = os.fork()
if other:
    Path(sys.argv[1]).write_text(f"{process.pid} {process._guard.pid}\\n{other}\\n")
time.sleep(20)
"""


def kill_parent(program: str, pid_file: Path) -> tuple[list[int], str]:
    """Run a program until it has written its pid file, and kill it; what the file says."""
    parent = subprocess.Popen([sys.executable, "-c", program, str(pid_file)])
    until(lambda: pid_file.exists() and pid_file.read_text().count("\n") == 2)
    first, second = pid_file.read_text().splitlines()
    pids = [int(pid) for pid in first.split()]
    assert all(is_there(pid) for pid in pids)
    parent.kill()
    parent.wait()
    return pids, second


def test_servers_are_gone_when_their_parent_is_killed(
    needs_zookeeper: None, tmp_path: Path
) -> None:
    pids, folder = kill_parent(SERVERS, tmp_path / "pids")

    until(lambda: not any(is_there(pid) for pid in pids), 5)

    until(lambda: not Path(folder).exists(), 5)


def test_a_fork_that_holds_the_pipe_open_keeps_nothing_alive(tmp_path: Path) -> None:
    pids, fork = kill_parent(HELD_OPEN, tmp_path / "pids")
    try:
        until(lambda: not any(is_there(pid) for pid in pids), 5)
        assert is_there(int(fork))
    finally:
        os.kill(int(fork), signal.SIGKILL)


def test_a_guard_passes_on_how_its_process_ended() -> None:
    by_itself = GuardedProcess(["sh", "-c", "exit 3"], output=Path(os.devnull))
    killed = GuardedProcess(["sleep", "60"], output=Path(os.devnull))
    assert killed.exit_code is None
    killed.kill()

    assert by_itself.wait()
    assert by_itself.exit_code == 3
    assert killed.exit_code == 128 + signal.SIGKILL
    assert not killed.send(signal.SIGCONT)


# --- what may be missing or in the way -------------------------------------------------


def program(folder: Path, says: str, code: int = 0) -> Path:
    """A program `java` that says this."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return folder


def test_java_of_java_home_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = program(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(home))

    assert java.find_java() == home / "bin" / "java"


@pytest.mark.parametrize(
    ("says", "code", "problem"),
    [
        ('java version "1.8.0_392"', 0, "is Java 8, but ZooKeeper's jars need Java 17 or later"),
        ('openjdk version "11.0.1"', 0, "is Java 11, but ZooKeeper's jars need Java 17"),
        ("no Java runtime present", 1, "should name a version, but said 'no Java runtime"),
        ("", 2, "should name a version, but said 'exit code 2'"),
    ],
)
def test_a_java_that_is_no_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int, problem: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program(tmp_path, says, code)))

    with pytest.raises(EnvironmentProblem, match=problem) as caught:
        java.find_java()

    assert str(caught.value).endswith(java.ADVICE)


def test_a_java_home_without_java_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="is not a program; install Java 17"):
        java.find_java()


def test_no_java_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="no Java on PATH and JAVA_HOME is not set"):
        java.find_java()


def test_a_java_that_cannot_be_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "java"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fnothing that runs")
    broken.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(EnvironmentProblem, match="cannot be run"):
        java.find_java()


def test_no_pyspark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda name: None)

    with pytest.raises(EnvironmentProblem, match=r"PySpark is not installed.*watchkeeper\[spark"):
        jars.zookeeper_jars()


def test_a_pyspark_without_zookeeper_is_told(tmp_path: Path) -> None:
    (tmp_path / "zookeeper-3.9.5.jar").touch()

    with pytest.raises(
        EnvironmentProblem, match="has no jar that matches zookeeper-jute"
    ) as told:
        jars.zookeeper_jars(tmp_path)

    assert "zookeeper-[0-9]" not in str(told.value)


@pytest.mark.parametrize(
    ("has_java", "outcome"), [(False, pytest.skip.Exception), (True, pytest.fail.Exception)]
)
def test_with_java_nothing_is_skipped(
    monkeypatch: pytest.MonkeyPatch, has_java: bool, outcome: type[BaseException]
) -> None:
    def missing() -> None:
        raise EnvironmentProblem("it is not there")

    monkeypatch.setattr(live, "find_java", (lambda: None) if has_java else missing)
    monkeypatch.setattr(live, "zookeeper_jars", missing)

    with pytest.raises(outcome, match="it is not there"):
        live.skip_without_zookeeper()


def test_pyspark_is_not_imported_to_find_its_jars() -> None:
    asked = "import sys, real.jars; real.jars.zookeeper_jars(); print('pyspark' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)

    assert done.stdout.strip() == "False" or "PySpark is not installed" in done.stderr


def test_a_port_that_is_taken_is_told(needs_zookeeper: None) -> None:
    with socket.create_server((ports.HOST, 0)) as squatter:
        port = squatter.getsockname()[1]
        zookeeper = Ensemble(settings=QUICK, ports=(Ports(port),))

        with pytest.raises(EnvironmentProblem, match=f"listen on 127.0.0.1:{port}, but another"):
            zookeeper.start()

    assert not zookeeper.folder.exists()


def test_ports_are_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [*free_ports(5), *free_ports(5)]

    assert len(set(given)) == 10
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(EnvironmentProblem, match=r"9 free ports are needed .* only 0 are free"):
        free_ports(9)


def test_a_server_that_ends_at_once_is_told_with_its_last_words(needs_zookeeper: None) -> None:
    zookeeper = Ensemble(settings=QUICK)
    (zookeeper.folder / "1" / "zoo.cfg").write_text("tickTime=nonsense\n")

    with pytest.raises(EnvironmentProblem) as caught:
        zookeeper.start()

    said = str(caught.value)
    assert "zookeeper/1 should serve at 127.0.0.1:" in said
    assert "its process ended with exit code 2" in said
    assert "nonsense" in said


def test_a_server_that_takes_too_long_is_told(needs_zookeeper: None) -> None:
    zookeeper = Ensemble(settings=QUICK)

    with pytest.raises(EnvironmentProblem, match=r"but it did not within 0\.1 s"):
        zookeeper.start(patience_s=0.0)

    assert zookeeper.servers[0].state == "down"
    assert not zookeeper.folder.exists()


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="should start under a guard, but did not"):
        GuardedProcess([str(tmp_path / "nothing")], output=Path(os.devnull))


@pytest.mark.parametrize("wrong", [{"tick_ms": 0}, {"min_session_ms": 10, "max_session_ms": 5}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"positive"):
        Settings(**wrong)


def test_ensembles_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="odd number of servers, not 2"):
        Ensemble(2)
    with pytest.raises(ValueError, match="3 servers need 3 sets of ports, not 1"):
        Ensemble(3, ports=(Ports(1),))


def test_no_two_processes_are_given_one_port() -> None:
    """Not even one whose server is down for a while, so that its port looks free."""
    asked = "from real.ports import free_ports; print(*free_ports(150)); input()"
    command = [sys.executable, "-c", asked]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    given = [set(one.stdout.readline().split()) for one in both if one.stdout is not None]
    for one in both:
        one.communicate("\n")

    assert [len(ports) for ports in given] == [150, 150]
    assert not given[0] & given[1]


def test_ports_come_again_only_after_many() -> None:
    """A process that runs for long does not take all there are."""
    rounds = [set(free_ports(60)) for _ in range(12)]

    assert not rounds[0] & rounds[1]
    assert len(set().union(*rounds)) < 100 * ports.ENOUGH
