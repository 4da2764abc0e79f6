"""The audit of a real cluster: what it reports, that it writes nothing, and resets of offsets."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from model import registry
from model.asks import Partition
from real import reset as resetting
from real.access import Access
from real.cluster import ClusterFile, ClusterState, LogState
from real.ensemble import Ensemble
from real.moments import CLOSE_SESSION, CREATE_SESSION
from real.ports import free_ports
from real.serving import DataServer
from real.snapshot import Reader
from real.transactions import Transaction, transactions_of
from tests.audited import GROUP, Nodes, Shape, healthy
from tests.live import OFTEN
from watchkeeper import auditing
from watchkeeper.cli import run_command

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def connect(hosts: str) -> KazooClient:
    client = KazooClient(hosts, timeout=4.0, connection_retry=OFTEN)
    client.start(timeout=10)
    return client


def disconnect(client: KazooClient) -> None:
    client.stop()
    client.close()


class Cluster:
    """A registry below a chroot of its own, written by a session for each that it names."""

    def __init__(self, hosts: str, chroot: str) -> None:
        self.hosts = f"{hosts}{chroot}"
        self.sessions: dict[int, KazooClient] = {}
        root = connect(hosts)
        root.ensure_path(chroot)
        disconnect(root)

    def client(self, session: int) -> KazooClient:
        if session not in self.sessions:
            self.sessions[session] = connect(self.hosts)
        return self.sessions[session]

    def write(self, nodes: Nodes) -> None:
        for path, (data, session) in nodes.items():
            self.client(0).ensure_path(registry.parent_of(path))
            if session:
                self.client(session).create(path, data, ephemeral=True)
            else:
                self.client(0).ensure_path(path)
                self.client(0).set(path, data)

    def end(self, *sessions: int) -> None:
        for session in sessions or list(self.sessions):
            disconnect(self.sessions.pop(session))


@pytest.fixture
def cluster(zookeeper: Ensemble, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(zookeeper.hosts, f"/{request.node.name.replace('[', '-').strip(']')}")
    yield made
    made.end()


def log_of(zookeeper: Ensemble) -> list[Transaction]:
    return list(transactions_of(zookeeper.servers[0].log_folder))


def logged_since(before: list[Transaction], zookeeper: Ensemble) -> list[Transaction]:
    """What was logged since, but for farewells of sessions from before, which may come late."""
    old = {one.session for one in before}
    since = log_of(zookeeper)[len(before) :]
    return [one for one in since if one.kind != CLOSE_SESSION or one.session not in old]


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code and the JSON of a command."""
    code = run_command([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


# --- the audit -------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
def test_a_healthy_group_is_found_healthy(
    cluster: Cluster, layout: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape(layout)))

    code, said = said_by(capsys, "audit", cluster.hosts)

    assert (code, said["verdict"], said["findings"]) == (0, "holds", [])
    [group] = said["groups"]
    assert (group["findings"], group["rebalance"]["moves"]) == ([], 0)
    assert len(group["owners"]) == (8 if layout == "0.7" else 4)
    assert said["as_of"]["consistent"]
    assert run_command(["audit", cluster.hosts]) == 0
    assert "none but offsets changed" in capsys.readouterr().out


def test_an_audit_opens_a_session_and_closes_it_and_that_is_all(
    cluster: Cluster, zookeeper: Ensemble
) -> None:
    """The server's own log is asked: whatever was written would stand in it."""
    cluster.write(healthy(Shape()))
    cluster.client(0).delete(registry.owner(GROUP, Partition("clicks", "0")))
    before = log_of(zookeeper)

    code = run_command(
        [
            "audit",
            cluster.hosts,
            "--group",
            GROUP,
            "--without",
            "broker/1",
            "--with",
            "2 consumers",
        ]
    )
    code_again = run_command(["audit", cluster.hosts, "--lag"])

    after = logged_since(before, zookeeper)
    assert [one.kind for one in after] == [CREATE_SESSION, CLOSE_SESSION] * 2
    assert after[0].session == after[1].session
    assert (code, code_again) == (1, 1)


def test_a_claim_that_outlives_its_members_session_is_found(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A member that came back under its old id beside the claims of its last session."""
    nodes = healthy(Shape())
    cluster.write(nodes)
    path = registry.member(GROUP, "billing_c0")
    cluster.client(0).delete(path)
    cluster.client(77).create(path, nodes[path][0], ephemeral=True)

    code, said = said_by(capsys, "audit", cluster.hosts)

    assert code == 1
    assert {one["kind"] for one in said["groups"][0]["findings"]} == {"dead claim", "idle member"}


def test_what_may_not_be_read_makes_the_verdict_unknown(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape()))
    mine = make_digest_acl("audit", "secret", all=True)
    cluster.client(0).set_acls(registry.members(GROUP), [mine])

    code, said = said_by(capsys, "audit", cluster.hosts)
    with_credentials = run_command(["audit", cluster.hosts, "--auth", "digest:audit:secret"])

    assert (code, said["verdict"]) == (2, "unknown")
    assert list(said["as_of"]["unread"]) == [registry.members(GROUP)]
    assert with_credentials == 0


def test_a_registry_that_never_stands_still_is_unknown(cluster: Cluster) -> None:
    """And one in which offsets alone are committed is not."""
    cluster.write(healthy(Shape()))
    with busy(cluster, registry.offset(GROUP, Partition("clicks", "0"))):
        assert run_command(["audit", cluster.hosts]) == 0
    with busy(cluster, registry.topic("clicks")):
        assert run_command(["audit", cluster.hosts]) == 2


@pytest.mark.parametrize("disturbed", [0, 1, 3])
def test_what_is_called_consistent_stood_together(cluster: Cluster, disturbed: int) -> None:
    """Two znodes that are only ever written in one transaction are read with one value.

    They stand on different levels of the tree, so they are read one after the other; here
    the transaction comes in between, in so many readings.
    """
    cluster.write(healthy(Shape()))
    paths = [registry.topic("clicks"), registry.partition_state(Partition("clicks", "0"))]
    with Reader(Access(cluster.hosts)) as opened:
        disturb(opened, cluster.client(0), paths, disturbed)
        snapshot = opened.read()

    assert (snapshot.attempts, snapshot.changed) == (disturbed + 1, ())
    assert snapshot.data(paths[0]) == snapshot.data(paths[1]) or not disturbed


def disturb(opened: Reader, writer: KazooClient, paths: list[str], times: int) -> None:
    """Write both znodes whenever the first has been read and the second has not."""
    asks, left = opened._ask, iter(range(times))

    def ask(request: Any, wanted: Iterable[str]) -> dict[str, Any]:
        answers = asks(request, wanted)
        if paths[0] in answers and request == opened.client.get_async:
            for number in itertools.islice(left, 1):
                both = writer.transaction()
                for path in paths:
                    both.set_data(path, b"%d" % number)
                both.commit()
        return answers

    opened._ask = ask  # type: ignore[method-assign]


@contextmanager
def busy(cluster: Cluster, path: str) -> Iterator[None]:
    """Somebody writes the same data over and over."""
    client, over = cluster.client(0), threading.Event()
    data, _ = client.get(path)

    def write() -> None:
        while not over.is_set():
            client.set(path, data)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def test_a_watch_prints_what_changes(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three looks: the same twice, and then a claim is gone; the last verdict is the code."""
    cluster.write(healthy(Shape()))
    looks = iter(["", "gone", "stop"])

    def pause(_: float) -> None:
        match next(looks):
            case "gone":
                capsys.readouterr()
                cluster.client(0).delete(registry.owner(GROUP, Partition("clicks", "3")))
            case "stop":
                raise KeyboardInterrupt

    monkeypatch.setattr(auditing, "sleep", pause)

    code = run_command(["audit", cluster.hosts, "--watch", "1"])

    _, *lines = capsys.readouterr().out.splitlines()
    assert code == 1
    assert lines == [
        f"+ {GROUP}: no owner: clicks/3 has no owner; a rebalance would give it to billing_c1",
        f"  {GROUP}: clicks/3: billing_c1 -> nobody",
    ]


def test_lag_is_told_by_our_brokers_alone(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One broker is ours; at the other's address nobody answers."""
    ours, nobody = free_ports(2)
    file = ClusterFile(tmp_path / "cluster.json")
    file.write(
        ClusterState(logs={"clicks/0-0": LogState(base=50)}, hosts={"broker/0": ["clicks/0-0"]})
    )
    nodes = healthy(Shape("0.7", topics={"clicks": 1}))
    for broker, port in enumerate((ours, nobody)):
        nodes[registry.broker(broker)] = (f"h:127.0.0.1:{port}".encode(), 0x100 + broker)
    cluster.write(nodes)
    server = DataServer(ours, "broker/0", file, lambda: 0)
    try:
        code, said = said_by(capsys, "audit", cluster.hosts, "--lag")
    finally:
        server.shutdown()
        server.server_close()

    assert code == 0
    assert said["groups"][0]["lag"] == {"clicks/0-0": 8}
    assert [note for note in said["notes"] if f"127.0.0.1:{nobody} is unknown" in note]


def test_changes_to_one_of_several_groups_name_it(cluster: Cluster) -> None:
    cluster.write(healthy(Shape()))
    other = {p.replace(GROUP, "other"): n for p, n in healthy(Shape()).items() if GROUP in p}
    cluster.write({path: (d.replace(b"billing", b"other"), s) for path, (d, s) in other.items()})

    assert run_command(["audit", cluster.hosts, "--with", "1 consumer"]) == 4
    assert run_command(["audit", cluster.hosts, "--with", "1 consumer", "--group", "other"]) == 0
    assert run_command(["audit", cluster.hosts, "--without", "broker/0"]) == 0


def test_a_watch_outlives_a_server_that_goes_and_comes_back(
    cluster: Cluster,
    zookeeper: Ensemble,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look that is cut off is told of, and the next one is made in its turn."""
    cluster.write(healthy(Shape()))
    monkeypatch.setattr(auditing, "reader", hasty(auditing.reader))
    [server] = zookeeper.servers
    acts = iter([server.kill, lambda: server.start(patience_s=10), None, None, None])

    def pause(_: float) -> None:
        act = next(acts)
        if act is not None:
            act()
        elif (said := capsys.readouterr()).err:
            assert "was lost while the registry was read" in said.err
            raise KeyboardInterrupt

    monkeypatch.setattr(auditing, "sleep", pause)

    assert run_command(["audit", cluster.hosts, "--watch", "1"]) in (0, 1)


def hasty(opens: Any) -> Any:
    """The same with a patience of one second."""

    @contextmanager
    def opened(request: auditing.Request) -> Iterator[Reader]:
        with opens(request) as reader:
            reader.access = Access(reader.access.hosts, timeout_s=1.0)
            yield reader

    return opened


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--group", "nobody"], "there is no group nobody"),
        (["--without", "broker/9"], "broker '9' is not registered"),
        (["--auth", "secret"], "--auth is written scheme:credential"),
        (["--assignor", "best"], "expected one of range"),
    ],
)
def test_what_cannot_be_audited_is_said_in_a_sentence(
    cluster: Cluster, arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape()))

    assert run_command(["audit", cluster.hosts, *arguments]) == 4
    assert wanted in capsys.readouterr().err


def test_nobody_at_the_address_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Access.__init__, "__defaults__", ((), (), 1.0))
    [port] = free_ports(1)

    assert run_command(["audit", f"127.0.0.1:{port}"]) == 4
    assert "no ZooKeeper answers at" in capsys.readouterr().err


def test_an_empty_place_is_no_registry(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["audit", cluster.hosts]) == 4
    assert "is a chroot missing" in capsys.readouterr().err


# --- offsets ---------------------------------------------------------------------------


def offsets_in(cluster: Cluster) -> list[bytes]:
    places = [registry.offset(GROUP, Partition("clicks", str(one))) for one in range(4)]
    return [cluster.client(0).get(path)[0] for path in places]


def test_offsets_come_back_as_they_were_exported(cluster: Cluster, tmp_path: Path) -> None:
    cluster.write(healthy(Shape()))
    file = tmp_path / "offsets.json"
    assert run_command(["offsets", cluster.hosts, "export", str(file), "--group", GROUP]) == 0
    cluster.end(0x1000, 0x1001)
    cluster.client(0).set(registry.offset(GROUP, Partition("clicks", "1")), b"1000")
    cluster.client(0).delete(registry.offset(GROUP, Partition("clicks", "2")))

    assert run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 0

    assert offsets_in(cluster) == [b"42"] * 4
    assert cluster.client(0).exists(registry.members(GROUP)) is not None


def test_offsets_of_a_group_that_lives_are_not_touched(
    cluster: Cluster, tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape()))
    file = exported(tmp_path, {"clicks": {"0": 1}})
    before = log_of(zookeeper)

    assert run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 1

    assert "is alive: billing_c0 is registered" in capsys.readouterr().err
    after = logged_since(before, zookeeper)
    assert [one.kind for one in after] == [CREATE_SESSION, CLOSE_SESSION]


def exported(folder: Path, offsets: dict[str, dict[str, int]]) -> Path:
    file = folder / "offsets.json"
    file.write_text(json.dumps({"group": GROUP, "offsets": offsets}))
    return file


@pytest.mark.parametrize("comes", ["a member", "a commit"])
def test_a_reset_fails_as_a_whole_if_something_comes_between(
    cluster: Cluster, comes: str
) -> None:
    """The group was dead when it was read, and is not when the offsets are written."""
    nodes = healthy(Shape())
    cluster.write(nodes)
    cluster.end(0x1000, 0x1001)
    wanted = {Partition("clicks", str(one)): 7 for one in range(4)}
    with Reader(Access(cluster.hosts)) as opened:
        snapshot = opened.read(GROUP)
        if comes == "a member":
            path = registry.member(GROUP, "billing_c9")
            cluster.client(9).create(
                path, nodes[registry.member(GROUP, "billing_c0")][0], ephemeral=True
            )
        else:
            cluster.client(0).set(registry.offset(GROUP, Partition("clicks", "3")), b"42")

        with pytest.raises(resetting.Refused, match="meanwhile; nothing was set"):
            resetting.reset(opened, snapshot, GROUP, wanted)

    assert offsets_in(cluster) == [b"42"] * 4


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("no", "is not JSON of the form"),
        ('{"group": "other", "offsets": {}}', "has the offsets of group 'other'"),
        (f'{{"group": "{GROUP}", "offsets": {{"clicks": {{"0": -1}}}}}}', "has -1 for clicks/0"),
        (f'{{"group": "{GROUP}", "offsets": {{"clicks": {{"99": 1}}}}}}', "no partition that is"),
    ],
)
def test_a_file_that_makes_no_sense_resets_nothing(
    cluster: Cluster,
    tmp_path: Path,
    content: str,
    wanted: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.write(healthy(Shape()))
    file = tmp_path / "offsets.json"
    file.write_text(content)

    assert run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 4
    assert wanted in capsys.readouterr().err
