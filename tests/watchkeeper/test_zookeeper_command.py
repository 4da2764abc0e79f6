"""The command `zookeeper`: a server in the foreground, and what cannot be served."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import until
from tests.support.patience import PATIENCE_S
from watchkeeper.cli.main import run_command
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

COMMAND = (sys.executable, "-m", "watchkeeper", "zookeeper")


@contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of the command, and the line that it prints when it serves."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def hosts_in(line: str) -> str:
    """The connection string in the line."""
    return line.partition(" serves ")[2].partition(", in ")[0]


@contextmanager
def client_of(hosts: str) -> Iterator[KazooClient]:
    """A client that is connected."""
    client = KazooClient(hosts)
    client.start(timeout=PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_ends_it(number: signal.Signals) -> None:
    """One line, no error, exit code 0; also while a client is connected."""
    with served("--port", "0") as (process, line):
        assert line.endswith(", in memory; Ctrl-C or SIGTERM ends it\n")
        with client_of(hosts_in(line)) as client:
            client.create("/a")
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")


def test_three_servers_have_three_ports_and_one_history() -> None:
    """A client of one sees what another one wrote."""
    with served("--port", "0", "--servers", "3") as (_, line):
        addresses = hosts_in(line).split(",")
        assert len(set(addresses)) == 3
        with client_of(addresses[0]) as client:
            client.create("/a")
        with client_of(addresses[1]) as client:
            client.sync("/a")
            assert client.exists("/a")


def test_timeouts_of_sessions_are_as_stated() -> None:
    """The shortest and the longest one, and the tick."""
    words = ("--tick", "100", "--min-session", "300", "--max-session", "700")
    with served("--port", "0", *words) as (_, line):
        host, _, port = hosts_in(line).rpartition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"conf")
            text = connection.makefile().read()
    for setting in ("tickTime=100", "minSessionTimeout=300", "maxSessionTimeout=700"):
        assert setting in text


def test_what_is_written_with_a_folder_is_there_after_a_kill(tmp_path: Path) -> None:
    """Everything that was answered; three servers have the one log."""
    data = tmp_path / "data"
    with (
        served("--port", "0", "--servers", "3", "--data", str(data)) as (_, line),
        client_of(hosts_in(line)) as client,
    ):
        client.create("/a", b"1")
    with (
        served("--port", "0", "--data", str(data)) as (process, line),
        client_of(hosts_in(line)) as client,
    ):
        assert f"in {data};" in line
        assert client.get("/a")[0] == b"1"
        process.terminate()
        until(lambda: process.poll() == 0)


def test_it_says_what_it_has_cut_off(tmp_path: Path) -> None:
    """A log that ends in a record that is not whole is no reason not to serve."""
    with (
        served("--port", "0", "--data", str(tmp_path)) as (_, line),
        client_of(hosts_in(line)) as client,
    ):
        client.create("/a")
    (log,) = (tmp_path / "version-2").glob("log.*")
    log.write_bytes(log.read_bytes() + b"half a record")

    with served("--port", "0", "--data", str(tmp_path)) as (process, line):
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE_S)

    assert err.startswith(f"the last 13 bytes of {log} were cut off: ")
    assert (process.returncode, err.count("\n")) == (0, 1)


WRONG = {
    "an even number of servers": (["--servers", "2"], "start 1 or 3"),
    "too few ports": (["--port", "65535", "--servers", "3"], "name one up to 65533"),
    "a host that others reach": (["--host", "0.0.0.0"], "add --allow-remote"),
    "a name that others may reach": (["--host", "example.org"], "add --allow-remote"),
    "a host that is no address": (["--host", "no.invalid", "--allow-remote"], "name another"),
    "an empty host": (["--host", ""], "--host '' is no address"),
    "an empty folder name": (["--data", ""], "--data is empty"),
    "bounds the wrong way round": (
        ["--min-session", "500", "--max-session", "400"],
        "no longer than the longest, 400 ms",
    ),
    "no port": (["--port", "65536"], "Invalid value for '--port'"),
    "no tick": (["--tick", "0"], "Invalid value for '--tick'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_served_is_a_sentence(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, with exit code 4."""
    words, sentence = WRONG[what]

    code = run_command(["zookeeper", "--port", "0", *words])

    out, err = capsys.readouterr()
    assert (code, out) == (4, "")
    assert sentence in err


def test_a_port_in_use_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the address."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        assert run_command(["zookeeper", "--port", str(port)]) == 4

    assert f"127.0.0.1:{port}, but Address already in use; end" in capsys.readouterr().err


def test_a_folder_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in its place, and a folder of another format."""
    file = tmp_path / "file"
    file.write_text("no folder")
    other = tmp_path / "other" / "version-2"
    other.mkdir(parents=True)
    (other / "log.1").write_bytes(b"another format, which no server may change")

    for data in (file, tmp_path / "other"):
        assert run_command(["zookeeper", "--port", "0", "--data", str(data)]) == 4
        err = capsys.readouterr().err
        assert str(data) in err
        assert "defect" not in err


def test_a_folder_that_another_server_uses_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two servers would write into one log."""
    with served("--port", "0", "--data", str(tmp_path)):
        assert run_command(["zookeeper", "--port", "0", "--data", str(tmp_path)]) == 4
    err = capsys.readouterr().err
    assert str(tmp_path) in err
    assert "defect" not in err


def test_a_disk_that_fails_ends_it_with_another_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that is not on the disk is answered: the first session is never granted."""

    def fails(folder: DataFolder) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DataFolder, "commit", fails)
    (port,) = free_ports(1)
    client = KazooClient(f"127.0.0.1:{port}")
    client.start_async()
    try:
        code = run_command(["zookeeper", "--port", str(port), "--data", str(tmp_path / "data")])
    finally:
        assert client.client_id is None or not client.client_id[0]
        client.stop()
        client.close()

    assert code == 1
    assert "No space left on device" in capsys.readouterr().err


def test_it_needs_no_kazoo() -> None:
    """The plain install is enough: an import of kazoo would fail."""
    program = (
        "import sys; sys.modules['kazoo'] = None; "
        "from watchkeeper.__main__ import main; sys.argv[1:] = ['zookeeper', '--port', '0']; "
        "main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert " serves " in process.stdout.readline()
    process.terminate()
    assert process.communicate(timeout=PATIENCE_S)[1] == ""
    assert process.returncode == 0
