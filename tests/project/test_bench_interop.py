"""The judge of mixed groups, and what `bench/interop.py` reads of Kafka's programs. No Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import interop
from bench.broker_08 import SENT
from bench.interop_clients import outcome
from bench.interop_clients.groups.judge import (
    GroupView,
    Part,
    Registration,
    differences,
    due,
    java_hash,
    parse_registration,
)
from bench.interop_clients.groups.members import read_in
from bench.interop_clients.groups.mixed import amiss
from bench.interop_clients.groups.offsets import Checked, added_up, checked, set_back
from bench.interop_clients.groups.own_member import consumer_of, settings_in
from bench.interop_clients.mixed_cluster.load import Load
from bench.interop_clients.mixed_cluster.replica_logs import PartitionLog, behind, until_equal
from bench.interop_clients.mixed_cluster.replica_logs import differences as differences_of_logs
from bench.interop_clients.outcome import Action, Rows, Skipped
from bench.interop_clients.tools.kafka_tools import completed
from bench.interop_clients.tools.own_tools import own_description
from bench.interop_clients.tools.topic_state import PartitionState, described, moves_of

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.assignment import assign, topic_view
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records

STATIC = b'{"version":1,"subscription":{"clicks":2},"pattern":"static","timestamp":"1"}'
FILTER = (
    b'{"version":1,"subscription":{"click.*,views":1},"pattern":"white_list","timestamp":"1"}'
)


def view_of(members: dict[str, Registration], **topics: int) -> GroupView:
    """What ZooKeeper has of a group that has settled by range."""
    view = GroupView(members, topics, {})
    return GroupView(members, topics, due(view, "range"))


def group() -> GroupView:
    """Three streams of two members on five partitions, and a filter that wants all topics."""
    members = {"g_b": parse_registration(STATIC), "g_a": parse_registration(FILTER)}
    return view_of(members, clicks=5, views=1, other=3)


# --- the judge -------------------------------------------------------------------------


def test_range_deals_runs_of_partitions_to_streams_in_order() -> None:
    """The first streams get one more; a filter gets what it matches, and nothing else."""
    assert group().owners == {
        Part("clicks", 0): "g_a-0",
        Part("clicks", 1): "g_a-0",
        Part("clicks", 2): "g_b-0",
        Part("clicks", 3): "g_b-0",
        Part("clicks", 4): "g_b-1",
        Part("views", 0): "g_a-0",
    }


def test_streams_are_sorted_as_texts() -> None:
    """Stream 10 comes before stream 2."""
    view = view_of({"g_a": Registration("static", {"clicks": 11})}, clicks=11)

    assert view.owners[Part("clicks", 2)] == "g_a-10"


def test_a_black_list_leaves_topics_out() -> None:
    """Neither what it names nor the topic of offsets."""
    registration = Registration("black_list", {"clicks": 2})

    assert registration.streams(["clicks", "views", "__consumer_offsets"]) == {"views": 2}


@pytest.mark.parametrize("streams", [1, 3])
def test_roundrobin_agrees_with_the_consumer(streams: int) -> None:
    """The judge and the product compute the same deal, by separate code."""
    members = {name: Registration("white_list", {".*": streams}) for name in ("g_a", "g_b")}
    topics = {"clicks": 7, "views": 12, "ad-1": 3}
    ids = [f"{name}-{number}" for name in members for number in range(streams)]
    views = tuple(
        topic_view(name, [Partition(name, str(n)) for n in range(count)], ids, "0.8")
        for name, count in sorted(topics.items())
    )

    shares = assign("roundrobin", views)

    assert due(GroupView(members, topics, {}), "roundrobin") == {
        Part(partition.topic, int(partition.name)): stream
        for stream, partitions in shares.items()
        for partition in partitions
    }


def test_roundrobin_refuses_topics_with_different_streams() -> None:
    """As Kafka 0.8.2.2 does."""
    view = GroupView({"g_a": Registration("static", {"a": 1, "b": 2})}, {"a": 1, "b": 1}, {})

    with pytest.raises(ValueError, match="different streams"):
        due(view, "roundrobin")


def test_java_hash() -> None:
    """Values that Java prints for these texts."""
    texts = ("", "[clicks,0]", "[views,0]", "Aa", "BB")

    assert [java_hash(text) for text in texts] == [0, 1627908499, -72890490, 2112, 2112]


def test_a_wrong_owner_is_a_difference() -> None:
    """One that is missing, one too many, and one that is another's."""
    view = group()
    owners = {**view.owners, Part("clicks", 4): "g_a-0", Part("other", 2): "g_b-0"}
    del owners[Part("views", 0)]

    assert differences(view, "range") == []
    assert differences(GroupView(view.members, view.topics, owners), "range") == [
        "clicks/4 is owned by g_a-0, due is g_b-1",
        "other/2 is owned by g_b-0, due is no stream",
        "views/0 is owned by no stream, due is g_a-0",
    ]


def test_a_group_is_settled_with_its_members_and_partitions() -> None:
    """A member that is missing, or a topic that has not grown yet, keeps it from that."""
    view, both = group(), {"g_a", "g_b"}

    assert amiss(view, both, "range", {"clicks": 5}) == ""
    assert "members are" in amiss(view, {*both, "g_c"}, "range", {})
    assert "fewer than 6" in amiss(view, both, "range", {"clicks": 6})
    assert "due is" in amiss(GroupView(view.members, view.topics, {}), both, "range", {})


# --- what programs print -----------------------------------------------------------------


def test_lines_of_consumer_offset_checker() -> None:
    """Sums over partitions, and who owns them; other groups do not count."""
    said = (
        "Group           Topic                          Pid Offset   logSize  Lag      Owner\n"
        "g               clicks                         0   24       24       0        g_a-0\n"
        "g               clicks                         1   20       26       6        g_b-0\n"
        "h               clicks                         1   20       26       6        h_a-0\n"
    )

    assert checked(said, "g", "clicks") == Checked(44, 50, 6, frozenset({"g_a-0", "g_b-0"}))


def test_offsets_are_set_back() -> None:
    """Each one, and nothing else of the file."""
    text = json.dumps({"group": "g", "zxid": 7, "offsets": {"clicks": {"0": 24, "1": 26}}})

    assert added_up(text) == 50
    assert json.loads(set_back(text)) == {
        **json.loads(text),
        "offsets": {"clicks": {"0": 0, "1": 0}},
    }


def test_both_descriptions_of_a_topic() -> None:
    """Kafka's command and this project's, of a partition with a leader and one without."""
    said = (
        "Topic:made\tPartitionCount:2\tReplicationFactor:2\tConfigs:\n"
        "\tTopic: made\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1\n"
        "\tTopic: made\tPartition: 1\tLeader: -1\tReplicas: 2,3\tIsr: \n"
    )
    rows = [
        {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [2, 1]},
        {"partition": 1, "leader": None, "replicas": [2, 3], "isr": []},
    ]

    found = described(said)

    assert found == {
        "made": {0: PartitionState(1, (1, 2), (1, 2)), 1: PartitionState(None, (2, 3), ())}
    }
    text = json.dumps({"topics": [{"topic": "made", "partitions": rows}]})
    assert own_description(text) == found
    assert [one.is_whole for one in found["made"].values()] == [True, False]


def test_moves_that_are_complete() -> None:
    """Those in progress and those that failed do not count."""
    said = (
        "Status of partition reassignment:\n"
        "Reassignment of partition [made,10] completed successfully\n"
        "Reassignment of partition [made,2] is still in progress\n"
        "Reassignment of partition [made,3] failed\n"
    )

    assert completed(said) == [10]
    assert json.loads(moves_of("made", {10: [2, 1]}))["partitions"] == [
        {"topic": "made", "partition": 10, "replicas": [2, 1]}
    ]


def test_rates_that_kafkas_producer_prints() -> None:
    """The rate of the whole run, not that of a part of it or a number of messages."""
    sent = (
        "5000 records sent, 999.8 records/sec (0.10 MB/sec), 9.0 ms avg latency, 2 max latency.\n"
        "20000 records sent, 25123.1 records/sec (2.40 MB/sec), 9.01 ms avg latency\n"
    )

    assert SENT.findall(sent)[-1] == ("20000", "2.40")


def test_messages_in_the_log_of_a_member() -> None:
    """A line that a kill has cut off may name another offset, and does not count."""
    log = "joined\nread clicks 3 12\nread clicks 3 13\nread clicks 3 1"

    assert list(read_in(log)) == [("clicks", 3, 12), ("clicks", 3, 13)]


# --- members and rows ------------------------------------------------------------------


def test_a_member_is_made_of_a_file_of_settings(tmp_path: Path) -> None:
    """The names are Kafka's, and the values have their types."""
    text = (
        "group.id=g\nconsumer.id=a\nzookeeper.connect=localhost:1\npattern=white_list\n"
        "streams=ad-.*:2\nzookeeper.session.timeout.ms=7000\noffsets.storage=kafka\n"
        "dual.commit.enabled=false\n"
    )

    me = consumer_of(settings_in(text), "kafka_08").me

    assert (me.group, me.configured_id, me.variant.name) == ("g", "a", "kafka_08")
    assert me.settings.session_timeout_ms == 7000
    assert me.settings.dual_commit is False


# --- the logs of a mixed cluster -------------------------------------------------------


def write_logs(root: Path, values: list[bytes], mark: int) -> dict[int, Path]:
    """Write equal replicas of a topic on two brokers, in two segments."""
    data = [encode([KeyedMessage(None, value)], at) for at, value in enumerate(values)]
    for broker in (1, 2):
        folder = root / str(broker) / "clicks-0"
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(b"".join(data[:2]))
        (folder / f"{2:020}.log").write_bytes(b"".join(data[2:]))
        text = f"0\n2\nother 0 9\nclicks 0 {mark}\n"
        (folder.parent / "replication-offset-checkpoint").write_text(text)
    return {broker: root / str(broker) for broker in (1, 2)}


def test_equal_replicas_are_equal(tmp_path: Path) -> None:
    folders = write_logs(tmp_path, [b"a", b"b", b"c"], mark=3)
    assert [*differences_of_logs(folders, "clicks", {0: (1, 2)})] == []
    assert [*behind(folders, "clicks", {0: (1, 2)})] == []
    found = until_equal(folders, "clicks", {0: (1, 2)})[0]
    assert (found.end, found.entry_count) == (3, 3)


def test_other_bytes_and_gaps_are_differences(tmp_path: Path) -> None:
    folders = write_logs(tmp_path, [b"a", b"b", b"c"], mark=3)
    last = folders[2] / "clicks-0" / f"{2:020}.log"
    last.write_bytes(encode([KeyedMessage(None, b"c")], 3))
    [found] = differences_of_logs(folders, "clicks", {0: (1, 2)})
    assert found == "clicks-0: 81 bytes up to 4 at broker 2, 81 up to 3 at broker 1"
    [found] = differences_of_logs(folders, "clicks", {0: (2,)})
    assert found == "clicks-0: offsets [0, 1, 3]... have gaps"


def test_a_high_watermark_below_the_end_is_behind(tmp_path: Path) -> None:
    folders = write_logs(tmp_path, [b"a", b"b", b"c"], mark=2)
    found = [*behind(folders, "clicks", {0: (1, 2)})]
    assert found[0] == (
        "clicks-0: the high watermark in the checkpoint of broker 1 is 2; expected 3"
    )
    assert len(found) == 2


def test_a_load_finds_what_is_lost_and_what_is_out_of_order(tmp_path: Path) -> None:
    """A message may be there twice: its first copy counts."""

    def said(values: list[bytes], acknowledged: list[bytes]) -> str:
        load = Load("127.0.0.1:1", "clicks")
        load.acknowledged = acknowledged
        data = encode([KeyedMessage(None, value) for value in values])
        return load.check({0: PartitionLog(data, tuple(records(data)))})

    assert said([b"1", b"2", b"2", b"3"], [b"1", b"2"]) == "2 acknowledged, none lost, 1 twice"
    with pytest.raises(AssertionError, match="lost messages"):
        said([b"1"], [b"1", b"2"])
    with pytest.raises(AssertionError, match="the order in a partition"):
        said([b"2", b"1"], [b"1", b"2"])


# --- rows ------------------------------------------------------------------------------


class TwoRows(Rows):
    """The servers of these rows may start or not."""

    def __init__(self, is_there: bool) -> None:
        self.is_there = is_there
        self.has_ended = False

    def actions(self) -> list[Action]:  # type: ignore[override]
        """The servers, and what needs them."""
        return [self.first_action("starts", self._start), self.action("acts", str, "done")]

    def end(self) -> None:
        """Note it."""
        self.has_ended = True

    def _start(self) -> str:
        if not self.is_there:
            raise Skipped("no Java")
        return "started"


@pytest.mark.parametrize("is_there", [True, False])
def test_rows_without_their_servers_are_skipped(is_there: bool) -> None:
    """The row that could not start them says why."""
    rows = TwoRows(is_there)

    with rows.ending():
        found = [outcome.run(action) for action in rows.actions()]

    details = ["started", "done"] if is_there else ["no Java", "its servers have not started"]
    assert [each.detail for each in found] == details
    assert {each.word for each in found} == {"passed" if is_there else "skipped"}
    assert rows.has_ended


def test_groups_of_rows_have_names() -> None:
    """Each can be chosen, and an unknown one is refused with those there are."""
    assert {"mixed-groups", "mixed-cluster", "offsets", "tools"} <= {*interop.ALL}
    with pytest.raises(SystemExit, match=r"expected some of .*mixed-groups"):
        interop.main(["--only", "mixed"])
