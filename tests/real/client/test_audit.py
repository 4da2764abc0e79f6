"""The audit of a live cluster: its report, that it writes nothing, and resets of offsets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from tests.support.control_plane_faults import FAULTS, SHAPE
from tests.support.live_registry import Cluster
from tests.support.registries import GROUP, Shape, controlled, healthy, state_path
from watchkeeper.cli.main import run_command
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths as registry
from watchkeeper.model.registry.payloads import (
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
)
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.operate.audit import audit
from watchkeeper.operate.audit import watch as audit_watch
from watchkeeper.real.access import Access
from watchkeeper.real.client import reset_offsets
from watchkeeper.real.client.snapshot import Reader
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.session_times import transactions_of

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(own_zookeeper: Ensemble) -> Ensemble:
    """Tests here read the log of the server, and restart it."""
    return own_zookeeper


@pytest.fixture
def cluster(zookeeper: Ensemble, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster.of_test(zookeeper.hosts, request) as made:
        yield made


def log_of(zookeeper: Ensemble) -> list[Transaction]:
    return list(transactions_of(zookeeper.servers[0].log_folder))


def logged_since(before: list[Transaction], zookeeper: Ensemble) -> list[Transaction]:
    """The later log records, without the closes of earlier sessions, which may come late."""
    old = {znode.session for znode in before}
    since = log_of(zookeeper)[len(before) :]
    return [
        event
        for event in since
        if event.opcode != Opcode.CLOSE_SESSION or event.session not in old
    ]


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

    code, output = said_by(capsys, "audit", cluster.hosts)

    assert (code, output["verdict"], output["findings"]) == (0, "holds", [])
    [group] = output["groups"]
    assert (group["findings"], group["rebalance"]["moves"]) == ([], 0)
    assert len(group["owners"]) == (8 if layout == "0.7" else 4)
    assert output["as_of"]["consistent"]
    assert run_command(["audit", cluster.hosts]) == 0
    assert "none but offsets changed" in capsys.readouterr().out


def test_an_audit_opens_a_session_and_closes_it_and_that_is_all(
    cluster: Cluster, zookeeper: Ensemble
) -> None:
    """The server's log would contain any write."""
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
    assert [event.opcode for event in after] == [Opcode.CREATE_SESSION, Opcode.CLOSE_SESSION] * 2
    assert after[0].session == after[1].session
    assert (code, code_again) == (1, 1)


def test_a_claim_that_outlives_its_members_session_is_found(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A member that returned under its old id beside the claims of its last session."""
    nodes = healthy(Shape())
    cluster.write(nodes)
    path = registry.member(GROUP, "billing_c0")
    cluster.client(0).delete(path)
    cluster.client(77).create(path, nodes[path][0], ephemeral=True)

    code, output = said_by(capsys, "audit", cluster.hosts)

    assert code == 1
    assert {row["kind"] for row in output["groups"][0]["findings"]} == {
        "dead claim",
        "idle member",
    }


def test_a_control_plane_is_audited(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Every znode that only a controller reads is read, and judged with the rest."""
    nodes = controlled(Shape(brokers=3, topics={"clicks": 6}))
    cluster.write(nodes)
    code, said = said_by(capsys, "audit", cluster.hosts)
    assert (code, said["findings"], said["notes"]) == (0, [], [])
    assert (said["controller"]["broker"], said["controller"]["epoch"]) == (0, 3)

    moves = Reassignment((("clicks", 0, (0, 2)),))
    election = PreferredReplicaElection((("clicks", 1),))
    cluster.write(
        {
            registry.REASSIGN_PARTITIONS: (moves.encode(), 0),
            registry.PREFERRED_REPLICA_ELECTION: (election.encode(), 0),
            registry.topic_deletion("old"): (b"", 0),
            registry.topic_config("old"): (b'{"conf', 0),
            state_path("clicks", 3): (PartitionState(-1, (0,)).encode(), 0),
        }
    )
    cluster.client(0).delete(registry.CONTROLLER_EPOCH)
    code, said = said_by(capsys, "audit", cluster.hosts)

    assert code == 1
    assert {row["kind"] for row in said["findings"]} == {
        *("bad payload", "controller epoch", "reassignment", "election", "stuck deletion"),
        *("orphan", "no leader", "under-replicated", "leader imbalance"),
    }
    assert said["groups"][0]["verdict"] == "violated", "clicks/3 has no leader"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_control_plane_is_found(
    name: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = controlled(SHAPE)
    FAULTS[name].change(nodes)
    cluster.write(nodes)

    code, said = said_by(capsys, "audit", cluster.hosts)

    found = [(row["kind"], row["message"]) for row in said["findings"]]
    assert (FAULTS[name].kind, FAULTS[name].message) in found
    assert (code, said["verdict"]) == (1, "violated")


def test_what_may_not_be_read_makes_the_verdict_unknown(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape()))
    mine = make_digest_acl("audit", "secret", all=True)
    cluster.client(0).set_acls(registry.members(GROUP), [mine])

    code, output = said_by(capsys, "audit", cluster.hosts)
    with_credentials = run_command(["audit", cluster.hosts, "--auth", "digest:audit:secret"])

    assert (code, output["verdict"]) == (2, "unknown")
    assert list(output["as_of"]["unread"]) == [registry.members(GROUP)]
    assert with_credentials == 0


def test_a_registry_that_keeps_changing_is_unknown(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in which only offsets are committed is not unknown."""
    cluster.write(healthy(Shape()))
    offset = registry.offset(GROUP, Partition("clicks", "0"))
    with written_at_each_read(cluster, monkeypatch, offset):
        assert run_command(["audit", cluster.hosts]) == 0
    with written_at_each_read(cluster, monkeypatch, registry.topic("clicks")):
        assert run_command(["audit", cluster.hosts]) == 2


@pytest.mark.parametrize("disturbed", [0, 1, 3])
def test_a_consistent_snapshot_is_consistent(cluster: Cluster, disturbed: int) -> None:
    """Two znodes that are only written in one transaction are read with one value.

    They are on different levels of the tree, so they are read one after the other; here the
    transaction happens in between, in several reads.
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
    asks, left = opened._request_all, iter(range(times))

    def ask(request: Any, wanted: Iterable[str]) -> dict[str, Any]:
        answers = asks(request, wanted)
        if paths[0] in answers and request == opened.client.get_async:
            for number in itertools.islice(left, 1):
                both = writer.transaction()
                for path in paths:
                    both.set_data(path, b"%d" % number)
                both.commit()
        return answers

    opened._request_all = ask  # type: ignore[method-assign]


@contextmanager
def written_at_each_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, path: str
) -> Iterator[None]:
    """Write a znode again whenever an audit has read its data."""
    client, requests, writes = cluster.client(0), Reader._request_all, itertools.count()
    data, _ = client.get(path)

    def request_all(opened: Reader, request: Any, wanted: Iterable[str]) -> dict[str, Any]:
        answers = requests(opened, request, wanted)
        if path in answers and request == opened.client.get_async:
            client.set(path, data)
            next(writes)
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "_request_all", request_all)
        yield
    assert next(writes)


def test_a_watch_prints_what_changes(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three audits: two equal ones, then a claim is gone; the last verdict is the code."""
    cluster.write(healthy(Shape()))
    looks = iter(["", "gone", "stop"])

    def pause(_: float) -> None:
        match next(looks):
            case "gone":
                capsys.readouterr()
                cluster.client(0).delete(registry.owner(GROUP, Partition("clicks", "3")))
            case "stop":
                raise KeyboardInterrupt

    monkeypatch.setattr(audit_watch, "sleep", pause)

    code = run_command(["audit", cluster.hosts, "--watch", "1"])

    _, *lines = capsys.readouterr().out.splitlines()
    assert code == 1
    assert lines == [
        f"+ {GROUP}: no owner: clicks/3 has no owner; a rebalance would give it to billing_c1",
        f"  {GROUP}: clicks/3: billing_c1 -> no member",
    ]


def test_changes_to_one_of_several_groups_name_it(cluster: Cluster) -> None:
    cluster.write(healthy(Shape()))
    nodes = {p.replace(GROUP, "other"): n for p, n in healthy(Shape()).items() if GROUP in p}
    cluster.write({path: (d.replace(b"billing", b"other"), s) for path, (d, s) in nodes.items()})

    assert run_command(["audit", cluster.hosts, "--with", "1 consumer"]) == 4
    assert run_command(["audit", cluster.hosts, "--with", "1 consumer", "--group", "other"]) == 0
    assert run_command(["audit", cluster.hosts, "--without", "broker/0"]) == 0


def test_a_watch_survives_a_restart_of_the_server(
    cluster: Cluster,
    zookeeper: Ensemble,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupted audit is reported, and the next one follows in its turn."""
    cluster.write(healthy(Shape()))
    monkeypatch.setattr(audit_watch, "reader", hasty(audit.reader))
    [server] = zookeeper.servers
    acts = iter([server.kill, lambda: server.start(), None, None, None])

    def pause(_: float) -> None:
        act = next(acts)
        if act is not None:
            act()
        elif (captured := capsys.readouterr()).err:
            assert "was lost while the registry was read" in captured.err
            raise KeyboardInterrupt

    monkeypatch.setattr(audit_watch, "sleep", pause)

    assert run_command(["audit", cluster.hosts, "--watch", "1"]) in (0, 1)


def hasty(opens: Any) -> Any:
    """The same with a timeout of one second."""

    @contextmanager
    def opened(request: audit.Request) -> Iterator[Reader]:
        with opens(request) as reader:
            reader.access = Access(reader.access.hosts, timeout_s=1.0)
            yield reader

    return opened


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--group", "strangers"], "there is no group strangers"),
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


def test_an_unreachable_address_is_reported_in_a_sentence(
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
    places = [registry.offset(GROUP, Partition("clicks", str(number))) for number in range(4)]
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


@pytest.mark.parametrize("comes", ["never", "/consumers/billing/ids/billing_c0"])
def test_a_group_that_is_to_come_begins_where_it_is_set(
    cluster: Cluster, tmp_path: Path, comes: str
) -> None:
    """It has no znode yet; a member that registers meanwhile makes the reset fail."""
    nodes = healthy(Shape())
    of_group = registry.group_home(GROUP)
    cluster.write({path: node for path, node in nodes.items() if not path.startswith(of_group)})
    wanted = {Partition("clicks", str(number)): 7 for number in range(4)}
    with Reader(Access(cluster.hosts)) as opened:
        snapshot = opened.read(GROUP)
        if comes == "never":
            file = exported(tmp_path, {"clicks": {str(number): 7 for number in range(4)}})
            assert (
                run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 0
            )
            assert offsets_in(cluster) == [b"7"] * 4
        else:
            cluster.client(0).create(comes, b"", ephemeral=True, makepath=True)
            with pytest.raises(reset_offsets.Refused, match="has come to life meanwhile"):
                reset_offsets.reset(opened, snapshot, GROUP, wanted)


def test_offsets_can_be_set_to_the_begin_of_a_log(cluster: Cluster, tmp_path: Path) -> None:
    """0 is the offset of the first message, and an offset like any other."""
    nodes = healthy(Shape())
    of_group = registry.group_home(GROUP)
    cluster.write({path: node for path, node in nodes.items() if not path.startswith(of_group)})
    file = exported(tmp_path, {"clicks": {str(number): 0 for number in range(4)}})

    assert run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 0

    assert offsets_in(cluster) == [b"0"] * 4


def test_offsets_of_a_group_that_lives_are_not_touched(
    cluster: Cluster, tmp_path: Path, zookeeper: Ensemble, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(healthy(Shape()))
    file = exported(tmp_path, {"clicks": {"0": 1}})
    before = log_of(zookeeper)

    assert run_command(["offsets", cluster.hosts, "reset", str(file), "--group", GROUP]) == 1

    assert "is alive: billing_c0 is registered" in capsys.readouterr().err
    after = logged_since(before, zookeeper)
    assert [event.opcode for event in after] == [Opcode.CREATE_SESSION, Opcode.CLOSE_SESSION]


def exported(folder: Path, offsets: dict[str, dict[str, int]]) -> Path:
    file = folder / "offsets.json"
    file.write_text(json.dumps({"group": GROUP, "offsets": offsets}))
    return file


@pytest.mark.parametrize("comes", ["a member", "a commit"])
def test_a_reset_fails_as_a_whole_after_a_concurrent_change(cluster: Cluster, comes: str) -> None:
    """The group was dead when it was read, and is not when the offsets are written."""
    nodes = healthy(Shape())
    cluster.write(nodes)
    cluster.end(0x1000, 0x1001)
    wanted = {Partition("clicks", str(number)): 7 for number in range(4)}
    with Reader(Access(cluster.hosts)) as opened:
        snapshot = opened.read(GROUP)
        if comes == "a member":
            path = registry.member(GROUP, "billing_c9")
            cluster.client(9).create(
                path, nodes[registry.member(GROUP, "billing_c0")][0], ephemeral=True
            )
        else:
            cluster.client(0).set(registry.offset(GROUP, Partition("clicks", "3")), b"42")

        with pytest.raises(reset_offsets.Refused, match="meanwhile; nothing was set"):
            reset_offsets.reset(opened, snapshot, GROUP, wanted)

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
