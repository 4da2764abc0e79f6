"""Administrative commands on a live ZooKeeper: what they write, refuse and leave alone."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from tests.support.live_registry import Cluster
from tests.support.registries import Nodes, Shape, controlled, state_path
from watchkeeper.cli.main import run_command
from watchkeeper.model.admin.configuration import configure
from watchkeeper.model.admin.election import elect_preferred
from watchkeeper.model.admin.placement import Growth
from watchkeeper.model.admin.plan import Plan, Refused
from watchkeeper.model.admin.reassignment import reassign
from watchkeeper.model.admin.topics import add_partitions, create_topic, delete_topics
from watchkeeper.model.audit.control_plane import ControlPlane, read_control_plane
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import (
    ConfigChange,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicAssignment,
    TopicConfig,
)
from watchkeeper.real.access import Access
from watchkeeper.real.client.snapshot import ADMINISTRATION, Reader
from watchkeeper.real.client.transaction import Unknown, carry_out
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

SHAPE = Shape(brokers=3, topics={"clicks": 3})
"""Partition n has the replicas n and (n + 1) % 3."""


@pytest.fixture
def cluster(zookeeper: Ensemble, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A healthy cluster with three brokers, a controller and one topic."""
    with Cluster.of_test(zookeeper.hosts, request) as made:
        made.write(controlled(SHAPE))
        yield made


def tree(client: KazooClient, above: str = "") -> dict[str, bytes]:
    """Every znode with its data."""
    found: dict[str, bytes] = {}
    for name in sorted(client.get_children(above or "/")):
        path = f"{above}/{name}"
        found[path] = client.get(path)[0]
        found |= tree(client, path)
    return found


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, bytes | None]:
    """The znodes that differ, with their data now; None for one that is gone."""
    paths_ = before.keys() | after.keys()
    return {path: after.get(path) for path in paths_ if before.get(path) != after.get(path)}


class Said:
    """What a command printed and changed, and its exit code."""

    def __init__(
        self,
        cluster: Cluster,
        capsys: pytest.CaptureFixture[str],
        *words: str,
        text: bool = False,
    ) -> None:
        name = [word for word in words[:2] if word in ("topics", *VERBS)]
        rest = words[len(name) :]
        before = tree(cluster.client(0))
        self.code = run_command([*name, cluster.hosts, *rest, *([] if text else ["--json"])])
        self.out, self.err = capsys.readouterr()
        self.changed = changed(before, tree(cluster.client(0)))

    @property
    def json(self) -> Any:
        """Its one JSON value."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The sentence of its error."""
        return str(self.json["error"]["message"])


VERBS = ("create", "alter", "delete", "describe", "reassign", "prefer", "config", "controller")


# --- topics ----------------------------------------------------------------------------


def test_a_topic_is_created(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("topics", "create", "views", "--partitions", "3", "--replication-factor", "2")
    said = Said(cluster, capsys, *words, "--start", "1", "--shift", "0", "--config", "flush.ms=5")

    assert said.code == 0
    assert said.changed == {
        "/brokers/topics/views": (b'{"partitions":{"0":[1,2],"1":[2,0],"2":[0,1]},"version":1}'),
        "/config/topics/views": b'{"config":{"flush.ms":"5"},"version":1}',
    }
    assert said.json["written"]
    assert said.json["assignment"][0] == {"partition": "views/0", "from": [], "to": [1, 2]}


def test_without_a_start_the_placement_is_random_and_legal(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(
        cluster,
        capsys,
        *("topics", "create", "views", "--partitions", "6", "--replication-factor", "3"),
    )

    [row] = Said(cluster, capsys, "topics", "describe", "views").json["topics"]
    assert said.code == 0
    assert [{*one["replicas"]} for one in row["partitions"]] == [{0, 1, 2}] * 6
    assert sorted(one["replicas"][0] for one in row["partitions"]) == [0, 0, 1, 1, 2, 2]


def test_partitions_are_added(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(cluster, capsys, "topics", "alter", "clicks", "--partitions", "4")

    added = TopicAssignment(((0, (0, 1)), (1, (1, 2)), (2, (2, 0)), (3, (0, 2)))).encode()
    assert (said.code, said.changed) == (0, {"/brokers/topics/clicks": added})


def test_partitions_are_added_as_the_shipped_tool_does_or_explicitly(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers 1 and 2: shipped, the id 1 is added to the position, and broker 1 leads again."""
    cluster.client(0).delete(paths.broker(0))
    views = TopicAssignment(((0, (1, 2)),)).encode()
    cluster.write({paths.topic("views"): (views, 0)})
    alter = ("topics", "alter", "views", "--dry-run")

    shipped = Said(cluster, capsys, *alter, "--partitions", "2", "--placement", "shipped")
    continued = Said(cluster, capsys, *alter, "--partitions", "2")
    explicit = Said(cluster, capsys, *alter, "--replica-assignment", "1:2,1:2")
    moved = Said(cluster, capsys, *alter, "--replica-assignment", "2:1,1:2")

    assert [said.json["assignment"][0]["to"] for said in (shipped, continued, explicit)] == [
        *([1, 2], [2, 1], [1, 2]),
    ]
    assert (moved.code, moved.error) == (
        4,
        "views/0 is on 1, 2, and the assignment gives it 2, 1; partitions that exist are moved "
        "by `watchkeeper reassign`",
    )


def test_a_deletion_is_requested(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(cluster, capsys, "topics", "delete", "clicks")
    again = Said(cluster, capsys, "topics", "delete", "clicks")

    assert (said.code, said.changed) == (0, {"/admin/delete_topics/clicks": b""})
    assert (again.code, again.changed) == (1, {})
    assert again.error == (
        "the deletion of clicks was requested and is not finished; wait until "
        "/admin/delete_topics/clicks is gone"
    )


def test_topics_are_described(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    state = PartitionState(1, (1,), leader_epoch=4, controller_epoch=3)
    config = TopicConfig((("flush.ms", "5"),)).encode()
    cluster.write(
        {
            state_path("clicks", 0): (state.encode(), 0),
            paths.topic_config("clicks"): (config, 0),
        }
    )

    said = Said(cluster, capsys, "topics", "describe", text=True)
    few = Said(cluster, capsys, "topics", "describe", "--under-replicated", "--unavailable")
    none = Said(cluster, capsys, "topics", "describe", "--unavailable", text=True)

    assert [line.split() for line in said.out.splitlines()] == [
        ["topic", "clicks:", "3", "partitions;", "flush.ms=5"],
        ["partition", "leader", "replicas", "isr", "epoch", "amiss"],
        ["0", "1", "0,", "1", "1", "4", "under-replicated,", "not", "preferred"],
        ["1", "1", "1,", "2", "1,", "2", "0"],
        ["2", "2", "2,", "0", "2,", "0", "0"],
    ]
    [row] = few.json["topics"]
    assert [one["partition"] for one in row["partitions"]] == [0]
    assert row["overrides"] == {"flush.ms": "5"}
    assert (none.code, none.out) == (0, "no topic is as described\n")


# --- reassignment ----------------------------------------------------------------------


def test_moves_off_a_broker_are_requested_and_verified(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    said = Said(cluster, capsys, "reassign", "--off", "2", "--save", str(file))

    moves = (("clicks", 1, (1, 0)), ("clicks", 2, (1, 0)))
    assert said.changed == {"/admin/reassign_partitions": Reassignment(moves).encode()}
    assert Reassignment.decode("", file.read_bytes()) == Reassignment(moves)
    verify = ("reassign", "--file", str(file), "--verify")
    pending = Said(cluster, capsys, *verify)
    assert pending.code == 2
    assert [one["reason"] for one in pending.json["partitions"]] == [
        *("not in sync yet: 0", "not in sync yet: 1"),
    ]

    done = TopicAssignment(((0, (0, 1)), (1, (1, 0)), (2, (1, 0)))).encode()
    cluster.client(0).delete(paths.REASSIGN_PARTITIONS)
    assert Said(cluster, capsys, *verify).code == 1
    cluster.client(0).set(paths.topic("clicks"), done)
    finished = Said(cluster, capsys, *verify, text=True)
    assert (finished.code, finished.out) == (
        0,
        "clicks/1: done (on 1, 0)\nclicks/2: done (on 1, 0)\n",
    )


def test_moves_by_a_file_and_to_brokers(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    file.write_text('{"partitions": [{"topic": "clicks", "partition": 0, "replicas": [2, 1]}]}')

    said = Said(cluster, capsys, "reassign", "--file", str(file))
    second = Said(cluster, capsys, "reassign", "--to", "0,1", "--start", "0", "--shift", "0")

    assert said.changed == {
        "/admin/reassign_partitions": Reassignment((("clicks", 0, (2, 1)),)).encode()
    }
    assert (second.code, second.changed) == (1, {})
    assert second.error.startswith("a reassignment is in progress: 1 partition in ")
    cluster.client(0).delete(paths.REASSIGN_PARTITIONS)
    third = Said(
        cluster,
        capsys,
        "reassign",
        "--to",
        "0,1",
        "--topic",
        "clicks",
        "--start",
        "0",
        "--shift",
        "0",
    )
    assert [one["to"] for one in third.json["assignment"]] == [[1, 0], [0, 1]]
    assert third.json["left_out"] == ["clicks/0 is on these brokers already"]


def test_nothing_to_move_writes_nothing(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty request would block all later ones."""
    cluster.client(0).create("/brokers/ids/7", b"h:1")

    said = Said(cluster, capsys, "reassign", "--off", "7", text=True)

    assert (said.code, said.changed) == (0, {})
    assert said.out == "move 0 partitions: nothing to change\n"


# --- elections, settings, the controller -----------------------------------------------


def test_preferred_replicas_are_elected(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cluster.write({state_path("clicks", 1): (PartitionState(2, (2, 1)).encode(), 0)})
    file = tmp_path / "partitions.json"
    file.write_bytes(PreferredReplicaElection((("clicks", 1),)).encode())

    unneeded = Said(cluster, capsys, "prefer", "clicks/0", text=True)
    by_file = Said(cluster, capsys, "prefer", "--file", str(file), "--dry-run")
    said = Said(cluster, capsys, "prefer")
    again = Said(cluster, capsys, "prefer")

    assert (unneeded.code, unneeded.changed) == (0, {})
    assert "left out: clicks/0 is led by its preferred replica, broker 0, already" in unneeded.out
    request = PreferredReplicaElection((("clicks", 1),)).encode()
    assert by_file.json["writes"][-1]["data"] == request.decode()
    assert said.changed == {"/admin/preferred_replica_election": request}
    assert (again.code, again.changed) == (1, {})
    assert again.error.startswith("an election is in progress")


def test_settings_are_changed_and_brokers_are_notified(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of the notification is ZooKeeper's."""
    said = Said(cluster, capsys, "config", "clicks", "--set", "flush.ms=5")
    first = "/config/changes/config_change_0000000000"
    assert said.changed == {
        "/config/topics/clicks": b'{"config":{"flush.ms":"5"},"version":1}',
        "/config/changes": b"",
        first: ConfigChange("clicks").encode(),
    }
    assert said.json["numbered"] == [first]

    shown = Said(cluster, capsys, "config", "clicks", text=True)
    assert (shown.out, shown.changed) == ("topic clicks overrides 1 setting\n  flush.ms=5\n", {})
    same = Said(cluster, capsys, "config", "clicks", "--set", "flush.ms=5")
    assert (same.code, same.changed, same.json["written"]) == (0, {}, False)
    gone = Said(cluster, capsys, "config", "clicks", "--unset", "flush.ms")
    assert gone.changed == {
        "/config/topics/clicks": b'{"config":{},"version":1}',
        "/config/changes/config_change_0000000001": ConfigChange("clicks").encode(),
    }


def test_the_controller_is_shown(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(cluster, capsys, "controller")
    stat = cluster.client(0).exists(paths.CONTROLLER)
    assert (said.code, said.json) == (
        0,
        {
            "broker": 0,
            "epoch": 3,
            "since_ms": stat.ctime,
            "session": f"0x{stat.ephemeralOwner:x}",
            "registered": True,
            "unknown": [],
        },
    )
    assert Said(cluster, capsys, "controller", text=True).out.startswith(
        "controller 0, epoch 3, since 20"
    )
    cluster.client(0).delete(paths.broker(0))
    unregistered = Said(cluster, capsys, "controller", text=True)
    assert unregistered.code == 1
    assert unregistered.out.endswith("broker 0 is not registered\n")
    cluster.client(0).delete(paths.CONTROLLER)
    none = Said(cluster, capsys, "controller", text=True)
    assert (none.code, none.out) == (1, "no controller; the last epoch is 3\n")


# --- dry runs --------------------------------------------------------------------------

CHANGES = {
    "create": ("topics", "create", "views", "--replica-assignment", "0:1,1:2"),
    "alter": ("topics", "alter", "clicks", "--partitions", "5"),
    "delete": ("topics", "delete", "clicks"),
    "reassign": ("reassign", "--to", "0,2", "--start", "0", "--shift", "0"),
    "prefer": ("prefer", "clicks/1"),
    "config": ("config", "clicks", "--set", "flush.ms=5", "--set", "segment.bytes=100"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_dry_run_shows_what_is_written_then_and_writes_nothing(
    name: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write({state_path("clicks", 1): (PartitionState(2, (2, 1)).encode(), 0)})

    shown = Said(cluster, capsys, *CHANGES[name], "--dry-run")
    text = Said(cluster, capsys, *CHANGES[name], "--dry-run", text=True)
    done = Said(cluster, capsys, *CHANGES[name])

    assert (shown.code, shown.changed, text.changed) == (0, {}, {})
    assert (shown.json["dry_run"], shown.json["written"]) == (True, False)
    assert shown.json["writes"] == done.json["writes"]
    announced = {
        one["path"]: one["data"].encode() for one in shown.json["writes"] if "data" in one
    }
    numbered = dict(
        zip(announced.keys() & {paths.CONFIG_CHANGE}, done.json["numbered"], strict=True)
    )
    assert {numbered.get(path, path): data for path, data in announced.items()} == done.changed
    assert "would write, in one transaction\n" in text.out
    assert all(one["path"] in text.out for one in shown.json["writes"])


# --- races -----------------------------------------------------------------------------


def make_create(control: ControlPlane) -> Plan:
    return create_topic(control, "views", {0: (0, 1)}, {"flush.ms": "5"})


RACES: dict[str, tuple[Callable[[ControlPlane], Plan], Nodes, str]] = {
    "another creates the topic": (
        make_create,
        {paths.topic("views"): (b"{}", 0), paths.topic_config("views"): (b"other", 0)},
        "topic views was created meanwhile by another client; describe it to see it",
    ),
    "another creates the topic without settings": (
        make_create,
        {paths.topic("views"): (b"{}", 0)},
        "topic views was created meanwhile by another client; describe it to see it",
    ),
    "another adds partitions": (
        lambda control: add_partitions(control, "clicks", 4, Growth.CONTINUED),
        {paths.topic("clicks"): (b"{}", 0)},
        "the assignment of clicks changed meanwhile; look at it, and repeat the command",
    ),
    "another requests the deletion": (
        lambda control: delete_topics(control, ["clicks"]),
        {paths.topic_deletion("clicks"): (b"", 0)},
        "the deletion of clicks was requested meanwhile by another client",
    ),
    "another requests a reassignment": (
        lambda control: reassign(control, [("clicks", 0, (1, 2))]),
        {paths.REASSIGN_PARTITIONS: (b"other", 0)},
        "another reassignment was requested meanwhile; wait until it is done",
    ),
    "the assignment changes before a reassignment": (
        lambda control: reassign(control, [("clicks", 0, (1, 2))]),
        {paths.topic("clicks"): (b"{}", 0)},
        "the assignment of clicks changed meanwhile; look at it, and repeat the command",
    ),
    "another requests an election": (
        lambda control: elect_preferred(control, [("clicks", 1)]),
        {paths.PREFERRED_REPLICA_ELECTION: (b"other", 0)},
        "another election was requested meanwhile; wait until it is done",
    ),
    "another changes the settings": (
        lambda control: configure(control, "clicks", {"flush.ms": "5"}, []),
        {paths.topic_config("clicks"): (b"other", 0)},
        "the settings of clicks changed meanwhile; look at it, and repeat the command",
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_what_was_overtaken_is_refused_and_writes_nothing(name: str, cluster: Cluster) -> None:
    """Another client writes after this one has read. Nothing of its writes is lost."""
    make, meanwhile, sentence = RACES[name]
    cluster.write({state_path("clicks", 1): (PartitionState(2, (2, 1)).encode(), 0)})
    with Reader(Access(cluster.hosts)) as opened:
        plan = make(read_control_plane(opened.read_below(ADMINISTRATION)))
        cluster.write(meanwhile)
        before = tree(cluster.client(0))

        with pytest.raises(Refused) as refused:
            carry_out(opened, plan)

    assert str(refused.value) == f"{sentence}; nothing was written"
    assert tree(cluster.client(0)) == before


def test_a_topic_that_vanishes_before_its_deletion_is_not_requested(cluster: Cluster) -> None:
    """A request for a topic that is gone would stay for ever where deletion is disabled."""
    with Reader(Access(cluster.hosts)) as opened:
        plan = delete_topics(read_control_plane(opened.read_below(ADMINISTRATION)), ["clicks"])
        cluster.client(0).delete(paths.topic("clicks"), recursive=True)

        with pytest.raises(Refused, match="the assignment of clicks changed meanwhile"):
            carry_out(opened, plan)


def test_a_lost_answer_is_unknown(cluster: Cluster) -> None:
    with Reader(Access(cluster.hosts)) as opened:
        plan = make_create(read_control_plane(opened.read_below(ADMINISTRATION)))
        opened.client.stop()

        with pytest.raises(Unknown, match="is not known: the connection was lost"):
            carry_out(opened, plan)


# --- refusals --------------------------------------------------------------------------

WRONG = {
    "illegal name": (
        ("topics", "create", "a b", "--replica-assignment", "0"),
        *(4, "topic name 'a b' is not allowed; expected 1 to 255 of the characters a-z"),
    ),
    "too many replicas": (
        ("topics", "create", "views", "--partitions", "1", "--replication-factor", "4"),
        *(1, "the replication factor is 4, and the brokers to place replicas on are 3; lower"),
    ),
    "unknown broker": (
        ("topics", "create", "views", "--replica-assignment", "0:9"),
        *(1, "the assignment of views/0 names broker 9, not registered now; registered brokers"),
    ),
    "existing topic": (
        ("topics", "create", "clicks", "--replica-assignment", "0"),
        *(1, "topic clicks exists already; delete it first, or choose another name"),
    ),
    "nothing given": (
        ("topics", "create", "views"),
        *(4, "give --partitions and --replication-factor, or --replica-assignment"),
    ),
    "both given": (
        ("topics", "create", "views", "--replica-assignment", "0", "--start", "0"),
        *(4, "--start has no effect beside --replica-assignment; give one of them"),
    ),
    "assignment without numbers": (
        ("topics", "create", "views", "--replica-assignment", "0:x"),
        *(4, "--replica-assignment '0:x' is not understood; write the brokers of each"),
    ),
    "setting without a value": (
        ("topics", "create", "views", "--replica-assignment", "0", "--config", "flush.ms"),
        *(4, "--config 'flush.ms' is not understood; write key=value"),
    ),
    "setting given twice": (
        ("config", "clicks", "--set", "flush.ms=1", "--set", "flush.ms=2"),
        *(4, "--set gives flush.ms more than once; give it once"),
    ),
    "no total": (("topics", "alter", "clicks"), 4, "give --partitions, or --replica-assignment"),
    "placement of an assignment": (
        ("topics", "alter", "clicks", "--replica-assignment", "0", "--placement", "shipped"),
        *(4, "--placement has no effect beside --replica-assignment; give one of them"),
    ),
    "unknown topic": (
        ("topics", "describe", "clics"),
        *(4, "there is no topic clics in the 0.8 layout; topics that are there: clicks"),
    ),
    "no moves": (("reassign",), 4, "give --file, --to or --off"),
    "to and off": (
        ("reassign", "--to", "1", "--off", "2"),
        *(4, "--to has no effect beside --off; give one of them"),
    ),
    "to no numbers": (
        ("reassign", "--to", "1,b"),
        *(4, "--to '1,b' is not understood; write broker ids, as in 1,2,3"),
    ),
    "off too many": (
        ("reassign", "--off", "1,2"),
        *(1, "clicks/0 is on 0, 1, and no other registered broker is left to take it over"),
    ),
    "verify without a file": (
        ("reassign", "--off", "1", "--verify"),
        *(4, "--verify goes with --file; --save writes such a file"),
    ),
    "missing file": (("reassign", "--file", "none.json"), 4, "none.json cannot be read: No such"),
    "start with a file": (
        ("reassign", "--file", "none.json", "--start", "0"),
        *(4, "--start has no effect beside --file; give one of them"),
    ),
    "no partition": (("prefer", "clicks"), 4, "'clicks' is no partition; write topic/number"),
    "dry run of nothing": (
        ("config", "clicks", "--dry-run"),
        *(4, "--dry-run goes with --set or --unset"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_is_refused_with_a_sentence(
    name: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    words, code, sentence = WRONG[name]

    said = Said(cluster, capsys, *words)

    assert (said.code, said.changed) == (code, {})
    assert said.error.startswith(sentence)


@pytest.mark.parametrize("text", ["", "{", '{"partitions":[{"topic":"clicks"}]}', "[]"])
def test_a_file_that_is_no_list_of_moves_is_refused(
    text: str, cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    file.write_text(text)

    for words in (("reassign",), ("reassign", "--verify"), ("prefer",)):
        said = Said(cluster, capsys, *words, "--file", str(file))
        assert (said.code, said.changed) == (4, {})
        assert said.error.startswith(f"{file} holds ")


HALVED = (
    *(paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.DELETE_TOPICS, paths.REASSIGN_PARTITIONS),
    *(paths.PREFERRED_REPLICA_ELECTION, paths.topic("clicks"), paths.topic_config("clicks")),
    state_path("clicks", 1),
)


@pytest.mark.parametrize("path", HALVED)
def test_half_a_payload_is_a_sentence_and_stays_as_it_is(
    path: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command does its work beside it, or refuses; none fails, and none overwrites it."""
    client = cluster.client(0)
    half = b'{"version":1,"pa'
    client.delete(path) if path == paths.CONTROLLER else client.ensure_path(path)
    cluster.write({path: (half, 0)})

    for words in (*CHANGES.values(), ("topics", "describe"), ("controller",)):
        said = Said(
            cluster, capsys, *words, "--dry-run" if words in CHANGES.values() else "--json"
        )
        assert (said.changed, said.code in (0, 1, 2)) == ({}, True)
        if said.code == 1 and "error" in said.json:
            assert said.error.startswith(f"{path} holds ")
    assert client.get(path)[0] == half
    assert run_command(["audit", cluster.hosts]) == 1
    assert path in capsys.readouterr().out


def test_a_missing_chroot_is_said(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, in a sentence: a warning of the library beside it would say it again."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        code = run_command(["controller", f"{cluster.hosts}/none"])

    assert code == 4
    said = capsys.readouterr().err
    assert "has no znode /test_a_missing_chroot_is_said/none" in said
    assert said.endswith("give the chroot under which the registry is, or none\n")
    assert said.count("\n") == 1


# --- rights ----------------------------------------------------------------------------


def test_what_may_not_be_read_or_written_is_said(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without rights to read, no plan is made; without rights to write, none is carried out."""
    mine = make_digest_acl("admin", "secret", all=True)
    anyone = make_acl("world", "anyone", read=True)
    client = cluster.client(0)
    client.set_acls(paths.REASSIGN_PARTITIONS.rpartition("/")[0], [mine, anyone])
    written = Said(cluster, capsys, "reassign", "--off", "2")
    assert written.code == 1
    assert written.error == (
        "/admin/reassign_partitions may not be written by this client; give its credentials by "
        "--auth; nothing was written"
    )
    auth = ("--auth", "digest:admin:secret")
    assert Said(cluster, capsys, "reassign", "--off", "2", *auth).code == 0

    client.set_acls(paths.topic_config("clicks"), [mine])
    client.add_auth("digest", "admin:secret")
    unread = Said(cluster, capsys, "config", "clicks", "--set", "flush.ms=1")
    assert (unread.code, unread.changed) == (2, {})
    assert unread.error == (
        "/config/topics/clicks may not be read by this client; give its credentials by --auth; "
        "nothing was written"
    )
    assert Said(cluster, capsys, "topics", "describe").code == 2
    assert Said(cluster, capsys, "config", "clicks", "--set", "flush.ms=1", *auth).code == 0
