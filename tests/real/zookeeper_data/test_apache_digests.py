"""Apache's server logs a digest of its whole tree with each transaction: ours has the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import ACL, Id

from tests.support.live_zookeeper import LONG_MS, TICK_MS, connected
from tests.support.patience import PATIENCE_S
from tests.support.zookeeper_files.histories import RandomHistory
from tests.support.zookeeper_files.tree_digest import digest_of, logged_digest
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper_files.replay import apply_transaction
from watchkeeper.model.zookeeper_files.snapshot import decode_snapshot
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.session_times import transactions_of
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeeper_data.data_folder import SUBFOLDER, DataFolder

pytestmark = pytest.mark.usefixtures("needs_zookeeper")

SETTINGS = Settings(tick_ms=TICK_MS, max_session_ms=LONG_MS, has_ttls=True)
NAMES = ("a", "b", "c", "d", "é")
IN_FLIGHT = 60
WITHOUT_DIGEST = frozenset({Opcode.ERROR})


@contextmanager
def written_by_apache(home: Path) -> Iterator[list[KazooClient]]:
    """Three clients of a server that takes a snapshot every now and then, and is killed."""
    zookeeper = Ensemble(settings=SETTINGS, folder=home)
    with (home / "1" / "zoo.cfg").open("a") as config:
        config.write("snapCount=100\n")
    with zookeeper:
        clients = [connected(zookeeper.hosts) for _ in range(3)]
        yield clients
        zookeeper.servers[0].kill()
        for client in clients:
            client.stop()
            client.close()


def write_in_flight(clients: list[KazooClient], random: Random) -> None:
    """Send many writes at once and wait for their answers, most of which are errors or not."""
    sent = [_send(random.choice(clients), random) for _ in range(IN_FLIGHT)]
    for answer in sent:
        with suppress(KazooException):
            answer.get(timeout=PATIENCE_S)


def _send(client: KazooClient, random: Random) -> Any:
    path = "/" + "/".join(random.choices(NAMES, k=random.randint(1, 2)))
    data, roll = random.randbytes(random.choice((0, 5, 900))), random.random()
    if roll < 0.5:
        ephemeral, sequence = random.random() < 0.3, random.random() < 0.4
        return client.create_async(path, data, ephemeral=ephemeral, sequence=sequence)
    if roll < 0.65:
        return client.delete_async(path)
    if roll < 0.8:
        return client.set_async(path, data)
    if roll < 0.9:
        return client.set_acls_async(path, [ACL(random.choice((31, 15)), Id("world", "anyone"))])
    multi = client.transaction()
    multi.create(path, data, sequence=random.random() < 0.5)
    # Not of the root: after that Apache's server logs wrong digests for a while, and says so
    # when it reads them.
    multi.set_data(path, b"multi")
    return multi.commit_async()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_replayed_transaction_makes_the_tree_that_apache_had(
    tmp_path: Path, seed: int
) -> None:
    """From every snapshot on, also those that were taken while three clients wrote."""
    random = Random(seed)
    with written_by_apache(tmp_path) as clients:
        for _ in range(12):
            write_in_flight(clients, random)
    folder = tmp_path / "1" / "data" / SUBFOLDER
    logged = list(transactions_of(folder))
    snapshots = {int(file.suffix[1:], 16): file for file in folder.glob("snapshot.*")}

    tree = decode_snapshot(snapshots[0].read_bytes(), 0)
    compared = 0
    for transaction in logged:
        tree = apply_transaction(tree, transaction)
        if transaction.opcode not in WITHOUT_DIGEST:
            assert digest_of(tree) == logged_digest(transaction), hex(transaction.zxid)
            compared += 1

    assert compared > 200
    assert len(snapshots) > 3
    for zxid, file in snapshots.items():
        assert digest_of(replayed(file, zxid, logged)) == digest_of(tree), file.name


def replayed(snapshot: Path, zxid: int, logged: list[Transaction]) -> Any:
    """The tree of a snapshot and all later transactions."""
    tree = decode_snapshot(snapshot.read_bytes(), zxid)
    for transaction in logged:
        if transaction.zxid > zxid:
            tree = apply_transaction(tree, transaction)
    return tree


def test_apache_has_the_digest_of_what_we_have_written(tmp_path: Path) -> None:
    """Its next transaction carries the digest of our tree and that transaction."""
    folder = DataFolder.open(tmp_path / "1" / "data")
    history = RandomHistory(3, folder.tree)
    for number, step in enumerate(history.steps(300)):
        folder.append(step.transaction)
        folder.commit()
        if number == 150:
            folder.snapshot(step.written.tree)
    folder.close()

    with written_by_apache(tmp_path) as clients:
        clients[0].create("/at-last", b"x")

    tree = history.tree
    later = [
        transaction
        for transaction in transactions_of(tmp_path / "1" / "data" / SUBFOLDER)
        if transaction.zxid > tree.zxid
    ]
    for transaction in later:
        tree = apply_transaction(tree, transaction)
        assert digest_of(tree) == logged_digest(transaction), hex(transaction.zxid)
    assert "/at-last" in tree.nodes
