"""Durable writes of a whole server: nothing is answered before the disk has it."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import connected, disconnect, until
from tests.support.patience import PATIENCE_S
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble
from watchkeeper.real.python_zookeeper.thread_ensemble import ThreadEnsemble
from watchkeeper.real.zookeeper_data import data_folder, file_layer
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

SETTINGS = EnsembleSettings(tick_ms=200, max_session_ms=60_000, connections_per_address=0)
WRITES = 300


def test_snapshots_are_taken_while_writes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that was answered is there after the restart, and old files are gone."""
    monkeypatch.setattr(DataFolder.__init__, "__kwdefaults__", {"transactions_per_snapshot": 20})
    with ThreadEnsemble(settings=SETTINGS, data=tmp_path) as zookeeper:
        client = connected(zookeeper.hosts)
        written = [client.create_async(f"/{number}", b"x") for number in range(WRITES)]
        assert [each.get(PATIENCE_S) for each in written] == [f"/{n}" for n in range(WRITES)]
        for number in range(40):
            client.set("/0", str(number).encode())
        disconnect(client)

    names = [file.name for file in (tmp_path / data_folder.SUBFOLDER).iterdir()]
    assert 1 < sum(name.startswith("snapshot.") for name in names) <= data_folder.SNAPSHOTS_KEPT
    with ThreadEnsemble(settings=SETTINGS, data=tmp_path) as zookeeper:
        client = connected(zookeeper.hosts)
        assert client.get("/0")[0] == b"39"
        assert len(client.get_children("/")) == WRITES + 1
        disconnect(client)


@pytest.mark.parametrize("servers", [1, 3])
def test_a_session_goes_on_after_a_restart(tmp_path: Path, servers: int) -> None:
    """With its ephemerals, under the same password."""
    with ThreadEnsemble(servers, settings=SETTINGS, data=tmp_path) as zookeeper:
        client = connected(zookeeper.hosts)
        client.create("/e", b"", ephemeral=True)
        known = client.client_id
        ports = [int(address.rpartition(":")[2]) for address in zookeeper.addresses]
    try:
        until(lambda: not client.connected)  # a client notices late that its server is gone
        with ThreadEnsemble(servers, settings=SETTINGS, data=tmp_path, ports=ports):
            until(lambda: client.connected)
            assert client.client_id == known
            assert client.get("/e")[1].owner_session_id == known[0]
            disconnect(client)
    finally:
        disconnect(client)


def test_what_was_answered_outlives_kill_minus_nine(tmp_path: Path) -> None:
    """Writes are on their way when the process is killed; the next one has the answered ones."""
    first = ProcessEnsemble(settings=SETTINGS, data=tmp_path)
    first.start()
    client = connected(first.hosts)
    written = [client.create_async(f"/{number}", b"x") for number in range(2000)]
    written[500].get(PATIENCE_S)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not first.is_running)
    client.stop()
    client.close()
    first.stop()
    answered = {each.value for each in written if each.successful()}

    with ProcessEnsemble(settings=SETTINGS, data=tmp_path) as second:
        client = connected(second.hosts)
        found = {f"/{name}" for name in client.get_children("/")}
        disconnect(client)
    assert len(answered) > 500
    assert answered <= found


def test_a_full_disk_stops_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is not answered, the reason is a sentence, and the folder can be used again."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    zookeeper = ThreadEnsemble(settings=SETTINGS, data=tmp_path)
    zookeeper.start()
    client: KazooClient = connected(zookeeper.hosts)
    client.create("/before", b"")
    with monkeypatch.context() as patched:
        patched.setattr(file_layer, "_sync_data", full)
        lost = client.create_async("/after", b"")
        until(lambda: zookeeper.failure is not None)
        assert not lost.ready() or lost.exception is not None
    assert "No space left on device" in str(zookeeper.failure)
    zookeeper.stop()
    client.stop()
    client.close()

    assert isinstance(zookeeper.failure, EnvironmentProblem)
    folder = DataFolder.open(tmp_path)
    folder.close()
    assert "/before" in folder.tree.nodes
