"""One folder, two servers: what either has written, the other goes on with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import ACL, Id

from tests.support.live_zookeeper import LONG_MS, TICK_MS, connected
from tests.support.patience import PATIENCE_S
from tests.support.zookeeper_files.histories import (
    NAMES,
    PASSWORD,
    TIMEOUT_MS,
    USER,
    RandomHistory,
)
from watchkeeper.model.actor.operations import CONTAINER_MS, Acl, Create, Delete
from watchkeeper.model.ensemble.session_ids import password_of
from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper.znode import Znode
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeeper_data.data_folder import DataFolder

pytestmark = pytest.mark.usefixtures("needs_zookeeper")

SETTINGS = Settings(
    tick_ms=TICK_MS, max_session_ms=LONG_MS, has_ttls=True, container_check_ms=3_600_000
)
"""Its servers delete no container while they are compared."""
READERS = ("DataTree", "FileSnap", "FileTxnLog", "FileTxnSnapLog", "SnapStream", "ZKDatabase")
"""The parts of Apache's server that read the files."""
KINDS = ("create", "create", "create", "set", "delete", "acl", "multi")


def data_of(home: Path) -> Path:
    """Where Apache's server keeps the data of its only server."""
    return home / "1" / "data"


@contextmanager
def apache(home: Path, settings: Settings = SETTINGS) -> Iterator[KazooClient]:
    """A client of Apache's server on the folder, which is killed at the end."""
    with Ensemble(settings=settings, folder=home) as zookeeper:
        client = connected(zookeeper.hosts)
        client.add_auth("digest", f"{USER}:{PASSWORD}")
        yield client
        zookeeper.servers[0].kill()
        client.stop()
        client.close()


def written(home: Path, seed: int, steps: int, *, snapshots: tuple[int, ...] = ()) -> Tree:
    """Go on with the folder as our server would, and return the tree."""
    folder = DataFolder.open(data_of(home))
    history = RandomHistory(seed, folder.tree)
    for number in range(steps):
        folder.append(history.step().transaction)
        folder.commit()
        if number in snapshots:
            folder.snapshot(history.tree)
    folder.close()
    return history.tree


def seen_by(client: KazooClient) -> dict[str, Any]:
    """Everything that a client can see: data, Stat, list, and the order of the children."""
    seen: dict[str, Any] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        data, stat = client.get(path)
        acl, _ = client.get_acls(path)
        children = client.get_children(path)
        lists = tuple(Acl(entry.perms, entry.id.scheme, entry.id.id) for entry in acl)
        seen[path] = (data or b"", tuple(stat), lists, tuple(children))
        waiting += [f"{path.rstrip('/')}/{name}" for name in children]
    return seen


def seen_in(tree: Tree) -> dict[str, Any]:
    """The same of a tree."""
    return {path: seen_of(znode) for path, znode in tree.nodes.items()}


def seen_of(znode: Znode) -> tuple[Any, ...]:
    stat = znode.stat
    values = (
        stat.czxid,
        stat.mzxid,
        stat.ctime,
        stat.mtime,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeral_owner,
        stat.data_length,
        stat.num_children,
        stat.pzxid,
    )
    return znode.data or b"", values, znode.acl, znode.child_names


def unordered(seen: dict[str, Any]) -> dict[str, Any]:
    return {path: (*rest, sorted(names)) for path, (*rest, names) in seen.items()}


def recovered(home: Path) -> Tree:
    """The tree that we recover from the folder."""
    folder = DataFolder.open(data_of(home))
    folder.close()
    return folder.tree


def write_at_random(client: KazooClient, seed: int, steps: int) -> None:
    """Let Apache's server write."""
    random = Random(seed)
    for _ in range(steps):
        try:
            _write(client, random)
        except KazooException:
            continue  # a refused write is a transaction too


def _write(client: KazooClient, random: Random) -> None:
    path = "/" + "/".join(random.choices(NAMES[:5], k=random.randint(1, 3)))
    kind = random.choice(KINDS)
    data = random.randbytes(random.choice((0, 5, 900)))
    if kind == "create":
        ephemeral = random.random() < 0.2
        client.create(path, data, ephemeral=ephemeral, sequence=random.random() < 0.3)
    elif kind == "set":
        client.set(path, data)
    elif kind == "delete":
        client.delete(path)
    elif kind == "acl":
        client.set_acls(path, [ACL(31, Id("world", "anyone")), ACL(1, Id("ip", "127.0.0.1"))])
    else:
        transaction = client.transaction()
        transaction.create(path, data, sequence=random.random() < 0.5)
        transaction.set_data(path, b"multi")
        transaction.create(f"{path}/x", b"")
        transaction.commit()


@pytest.mark.parametrize("seed", [1, 2])
def test_apache_goes_on_with_what_we_have_written(tmp_path: Path, seed: int) -> None:
    """It has the same tree: data, Stats, lists, and the order of children as after our start."""
    data_of(tmp_path).mkdir(parents=True)
    tree = written(tmp_path, seed, 400, snapshots=(120, 300))
    ours = recovered(tmp_path)
    assert unordered(seen_in(ours)) == unordered(seen_in(tree))

    with apache(tmp_path) as client:
        assert seen_by(client) == seen_in(ours)
    assert complaints_in(tmp_path / "1" / "output.log") == []


def complaints_in(log: Path) -> list[str]:
    """The warnings and errors of Apache's server about its files."""
    lines = log.read_text().splitlines()
    of_readers = [line for line in lines if any(f" {name}: " in line for name in READERS)]
    assert of_readers
    return [line for line in of_readers if " INFO " not in line]


def test_children_are_listed_in_apaches_order(tmp_path: Path) -> None:
    """Also those of one hash, and those of a table that had been larger before the snapshot."""
    folder = DataFolder.open(data_of(tmp_path))
    history = RandomHistory(1, folder.tree)
    steps = history.steps(1)  # a session begins
    session = next(iter(history.tree.sessions))
    alike = ("AaAa", "BBBB", "AaBB", "BBAa")
    for parent, names in (("/p", alike), ("/q", alike[::-1]), ("/r", tuple(map(str, range(60))))):
        steps.append(history.write(session, Create(parent)))
        steps += [history.write(session, Create(f"{parent}/{name}")) for name in names]
    steps += [history.write(session, Delete(f"/r/{name}")) for name in range(50)]
    for step in steps:
        folder.append(step.transaction)
    folder.commit()
    folder.snapshot(history.tree)
    folder.close()
    ours = recovered(tmp_path)
    assert ours.nodes["/r"].child_names != history.tree.nodes["/r"].child_names
    assert ours.nodes["/p"].child_names != ours.nodes["/q"].child_names

    with apache(tmp_path) as client:
        assert seen_by(client) == seen_in(ours)


def test_apache_without_ttls_deletes_znodes_that_have_one(tmp_path: Path) -> None:
    """As the documentation warns: it takes them for ephemerals; containers stay."""
    folder = DataFolder.open(data_of(tmp_path))
    history = RandomHistory(1, folder.tree)
    steps = history.steps(1)  # a session begins
    session = next(iter(history.tree.sessions))
    for path, lifetime_ms in (("/ttl", 3_600_000), ("/container", CONTAINER_MS)):
        steps.append(history.write(session, Create(path, lifetime_ms=lifetime_ms)))
    for step in steps:
        folder.append(step.transaction)
    folder.commit()
    folder.close()

    with apache(tmp_path, replace(SETTINGS, has_ttls=False)) as client:
        there = client.get_children("/")

    assert sorted(there) == ["container", "zookeeper"]


def test_sessions_go_on_at_apache_with_their_passwords(tmp_path: Path) -> None:
    """And their ephemerals go when they close."""
    data_of(tmp_path).mkdir(parents=True)
    tree = written(tmp_path, 5, 300)
    session = max(tree.ephemerals, key=lambda owner: len(tree.ephemerals[owner]))

    with apache(tmp_path) as client:
        own = KazooClient(
            client.hosts and ",".join(f"{host}:{port}" for host, port in client.hosts),
            client_id=(session, password_of(session)),
            timeout=TIMEOUT_MS / 1000,
        )
        own.start(timeout=PATIENCE_S)
        assert own.client_id[0] == session
        assert all(client.exists(path) for path in tree.ephemerals[session])
        own.stop()
        own.close()
        assert not any(client.exists(path) for path in tree.ephemerals[session])


@pytest.mark.parametrize("seed", [3, 4])
def test_we_go_on_with_what_apache_has_written(tmp_path: Path, seed: int) -> None:
    """After kill -9: what it had answered is there, and its sessions with their ephemerals."""
    with apache(tmp_path) as client:
        write_at_random(client, seed, 200)
        client.create("/ephemeral", b"", ephemeral=True)
        seen = seen_by(client)
        session, _ = client.client_id

    tree = recovered(tmp_path)
    assert seen_in(tree) == seen
    assert "/ephemeral" in tree.ephemerals[session]
    assert tree.sessions[session].timeout_ms == LONG_MS


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.slow)])
def test_servers_take_turns(tmp_path: Path, seed: int) -> None:
    """Neither loses or changes anything of the other's, with and without snapshots between."""
    for turn in range(2):
        with apache(tmp_path) as client:
            write_at_random(client, seed + turn, 60)
            seen = seen_by(client)
        # It has taken a snapshot since it has read the folder, so our tables may be smaller.
        assert unordered(seen_in(recovered(tmp_path))) == unordered(seen)
        tree = written(tmp_path, seed + turn, 100, snapshots=(50,) if turn else ())
        ours = recovered(tmp_path)
        with apache(tmp_path) as client:
            assert seen_by(client) == seen_in(ours)
            copied = recovered_copy(tmp_path)
        assert unordered(seen_in(copied)) == unordered(seen_in(tree))
        assert lifetimes_in(copied) == lifetimes_in(tree)


def lifetimes_in(tree: Tree) -> dict[str, int]:
    """The lifetimes of containers and of znodes with a TTL, which no client can see."""
    return {path: tree.nodes[path].lifetime_ms for path in tree.limited}


def recovered_copy(home: Path) -> Tree:
    """The tree that we recover while Apache's server uses the folder, from a copy of it."""
    copy = home.with_name(f"{home.name}-copy")
    shutil.copytree(data_of(home), data_of(copy), dirs_exist_ok=True)
    tree = recovered(copy)
    shutil.rmtree(copy)
    return tree


@pytest.mark.parametrize("seed", [21, pytest.param(22, marks=pytest.mark.slow)])
def test_fuzzy_snapshots_are_read_as_apache_reads_them(tmp_path: Path, seed: int) -> None:
    """Many clients write while it takes snapshots, until kill -9; nothing answered is missing."""
    random = Random(seed)
    zookeeper = Ensemble(settings=SETTINGS, folder=tmp_path)
    with (tmp_path / "1" / "zoo.cfg").open("a") as config:
        config.write("snapCount=120\n")
    with zookeeper:
        clients = [connected(zookeeper.hosts) for _ in range(3)]
        answered = answered_under_load(clients, random, 2500)
        zookeeper.servers[0].kill()
        for client in clients:
            client.stop()
            client.close()

    assert len(list((data_of(tmp_path) / "version-2").glob("snapshot.*"))) > 3
    ours = recovered(tmp_path)
    assert len(answered) > 300
    assert set(answered) <= set(ours.nodes)
    with apache(tmp_path) as client:
        # So many names may fill a bucket, whose order is then that of a tree (java_hash_order).
        assert unordered(seen_by(client)) == unordered(seen_in(ours))


def answered_under_load(clients: list[KazooClient], random: Random, number: int) -> list[str]:
    """Write without waiting; return the paths whose create was answered and that stay."""
    lasting: list[Any] = []
    for index in range(number):
        client = random.choice(clients)
        if index == number - 200:
            # The last ones are on their way when the server is killed.
            lasting[-1].wait(PATIENCE_S)
        if random.random() < 0.2:
            lasting.append(client.create_async(f"/stays-{index}", b"x"))
            continue
        path = f"/{random.choice(NAMES[:5])}"
        if random.random() < 0.5:
            path += f"/{random.choice(NAMES[:5])}"
        roll = random.random()
        if roll < 0.4:
            client.create_async(path, b"y" * 100, ephemeral=random.random() < 0.3)
        elif roll < 0.6:
            client.create_async(path, b"z", sequence=True)
        elif roll < 0.8:
            client.delete_async(path)
        else:
            client.set_async(path, random.randbytes(50))
    return [each.value for each in lasting if each.successful()]
