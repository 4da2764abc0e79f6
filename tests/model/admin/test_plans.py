"""Plans of administrative changes: what they write, under which conditions, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.registries import Nodes, Shape, controlled, healthy, snapshot, state_path
from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.admin.configuration import configure, overrides_of
from watchkeeper.model.admin.description import Mark, describe
from watchkeeper.model.admin.election import elect_preferred
from watchkeeper.model.admin.placement import Growth, place
from watchkeeper.model.admin.plan import BadRequest, Plan, Refused, WriteKind
from watchkeeper.model.admin.reassignment import Progress, moves_off, moves_to, reassign, verify
from watchkeeper.model.admin.topic_settings import SETTINGS
from watchkeeper.model.admin.topics import (
    add_partitions,
    add_partitions_as,
    create_topic,
    delete_topics,
)
from watchkeeper.model.audit.control_plane import ControlPlane, read_control_plane
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import (
    ConfigChange,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicAssignment,
    TopicConfig,
    TopicDeletion,
)

SHAPE = Shape(brokers=3, topics={"clicks": 3})
"""Partition n has the replicas n and (n + 1) % 3."""
ASSIGNED = {0: (0, 1), 1: (1, 2), 2: (2, 0)}


def cluster(**changes: bytes | None) -> ControlPlane:
    """A healthy cluster, after changes by path."""
    nodes: Nodes = controlled(SHAPE)
    for path, data in changes.items():
        if data is None:
            del nodes[path]
        else:
            nodes[path] = (data, 0)
    return read_control_plane(snapshot(nodes))


def writes(plan: Plan) -> list[tuple[str, str, bytes]]:
    """The writes of a plan without their conditions."""
    return [(write.kind.value, write.path, write.data) for write in plan.changes]


def refusal(act: Callable[[], object], kind: type[Refused] = Refused) -> str:
    """The sentence of a refusal of exactly this kind."""
    with pytest.raises(Refused) as refused:
        act()
    assert type(refused.value) is kind
    return str(refused.value)


def state(leader: int, *isr: int) -> bytes:
    return PartitionState(leader, isr, controller_epoch=3).encode()


# --- creation --------------------------------------------------------------------------


def test_a_topic_is_created_with_its_settings_in_one_transaction() -> None:
    assigned = place(range(3), 2, 2, start=0, shift=0)

    plan = create_topic(cluster(), "views", assigned, {"retention.ms": "1000"})

    assert writes(plan) == [
        (
            *("create", "/config/topics/views"),
            b'{"config":{"retention.ms":"1000"},"version":1}',
        ),
        (
            *("create", "/brokers/topics/views"),
            b'{"partitions":{"0":[0,1],"1":[1,2]},"version":1}',
        ),
    ]
    assert [(one.partition, one.before, one.after) for one in plan.placed] == [
        ("views/0", (), (0, 1)),
        ("views/1", (), (1, 2)),
    ]


def test_missing_parents_are_created_and_a_missing_controller_is_noted() -> None:
    """A cluster on which only the brokers have registered."""
    nodes = {path: row for path, row in healthy(SHAPE).items() if path.startswith("/brokers/ids")}
    control = read_control_plane(snapshot(nodes))

    plan = create_topic(control, "views", {0: (0,)}, {})

    assert [write.path for write in plan.writes] == [
        *("/config", "/config/topics", "/config/topics/views"),
        *("/brokers/topics", "/brokers/topics/views"),
    ]
    assert plan.notes == (
        "no broker is the controller; one that becomes it carries the change out",
    )


def test_settings_of_an_earlier_topic_are_replaced_at_their_version() -> None:
    control = cluster(**{paths.topic_config("views"): b'{"config":{"flush.ms":"1"}}'})

    plan = create_topic(control, "views", {0: (0,)}, {})

    assert (plan.writes[0].kind, plan.writes[0].version) == (WriteKind.SET, 0)
    assert plan.notes == ("/config/topics/views is left of an earlier topic; it is replaced",)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "a" * 256, "a\n"])
def test_an_illegal_name_is_refused(name: str) -> None:
    assert refusal(lambda: create_topic(cluster(), name, {0: (0,)}, {}), BadRequest) == (
        f"topic name {name!r} is not allowed; expected 1 to 255 of the characters a-z, A-Z, 0-9, "
        "'.', '_' and '-', other than '.' and '..'"
    )


@pytest.mark.parametrize("name", ["a", "A-_.9", "...", "a" * 255])
def test_a_legal_name_is_taken(name: str) -> None:
    assert create_topic(cluster(), name, {0: (0,)}, {}).changes


@pytest.mark.parametrize(
    ("assigned", "kind", "message"),
    [
        (
            {0: (0, 9)},
            Refused,
            "the assignment of views/0 names broker 9, not registered now; registered brokers: "
            "0, 1, 2",
        ),
        (
            {0: (0, 0)},
            BadRequest,
            "views/0 is given broker 0 more than once; name each broker once",
        ),
        ({0: ()}, BadRequest, "views/0 is given no replica; name at least one broker"),
        (
            {0: (0, 1), 1: (2,)},
            BadRequest,
            "partitions of views have 1 and 2 replicas; give every partition the same number",
        ),
        (
            {0: (0,), 2: (1,)},
            BadRequest,
            "the partitions of views have to be numbered from 0 without a gap",
        ),
        ({}, BadRequest, "the partitions of views have to be numbered from 0 without a gap"),
    ],
)
def test_an_assignment_that_no_cluster_has_is_refused(
    assigned: dict[int, tuple[int, ...]], kind: type[Refused], message: str
) -> None:
    assert refusal(lambda: create_topic(cluster(), "views", assigned, {}), kind) == message


def test_a_topic_that_exists_or_is_being_deleted_is_refused() -> None:
    assert refusal(lambda: create_topic(cluster(), "clicks", {0: (0,)}, {})) == (
        "topic clicks exists already; delete it first, or choose another name"
    )
    control = cluster(**{paths.topic_deletion("old"): b""})
    assert refusal(lambda: create_topic(control, "old", {0: (0,)}, {})) == (
        "the deletion of old was requested and is not finished; wait until "
        "/admin/delete_topics/old is gone"
    )


def test_a_plan_that_no_transaction_holds_is_refused() -> None:
    """ZooKeeper ends the connection of a client that sends a request above its limit."""
    many = dict.fromkeys(range(80_000), (0, 1, 2))

    assert refusal(lambda: create_topic(cluster(), "views", many, {})) == (
        "the change does not fit into one transaction of ZooKeeper; divide it"
    )


# --- partitions that are added ---------------------------------------------------------


def test_partitions_are_added_at_the_version_that_was_read() -> None:
    plan = add_partitions(cluster(), "clicks", 5, Growth.CONTINUED)

    [write] = plan.writes
    assert (write.kind, write.path, write.version) == (WriteKind.SET, "/brokers/topics/clicks", 0)
    added = TopicAssignment.decode("", write.data).replicas
    assert added == (*ASSIGNED.items(), (3, (0, 2)), (4, (1, 0)))
    assert [one.partition for one in plan.placed] == ["clicks/3", "clicks/4"]
    assert "the assignment of clicks changed meanwhile" in write.conflict


def test_an_explicit_assignment_may_not_move_what_exists() -> None:
    plan = add_partitions_as(cluster(), "clicks", ASSIGNED | {3: (2, 1)})
    assert TopicAssignment.decode("", plan.writes[0].data).replicas[3] == (3, (2, 1))

    moved = ASSIGNED | {0: (2, 1), 3: (2, 1)}
    assert refusal(lambda: add_partitions_as(cluster(), "clicks", moved), BadRequest) == (
        "clicks/0 is on 0, 1, and the assignment gives it 2, 1; partitions that exist are moved "
        "by `watchkeeper reassign`"
    )


@pytest.mark.parametrize("total", [-1, 0, 3])
def test_a_topic_cannot_shrink(total: int) -> None:
    assert refusal(
        lambda: add_partitions(cluster(), "clicks", total, Growth.CONTINUED), BadRequest
    ) == (f"clicks has 3 partitions, and {total} are requested; the number can only grow")


def test_partitions_are_not_added_while_the_topic_moves_or_goes() -> None:
    moving = Reassignment((("clicks", 0, (1, 2)),)).encode()
    control = cluster(**{paths.REASSIGN_PARTITIONS: moving})
    assert "are being reassigned" in refusal(
        lambda: add_partitions(control, "clicks", 4, Growth.CONTINUED)
    )
    going = cluster(**{paths.topic_deletion("clicks"): b""})
    assert "the deletion of clicks was requested" in refusal(
        lambda: add_partitions(going, "clicks", 4, Growth.CONTINUED)
    )


def test_a_gap_between_partitions_is_refused() -> None:
    gap = TopicAssignment(((0, (0,)), (2, (1,)))).encode()
    control = cluster(**{paths.topic("clicks"): gap})

    assert refusal(lambda: add_partitions(control, "clicks", 4, Growth.CONTINUED)) == (
        "clicks has the partitions 0, 2, not numbered from 0 without a gap"
    )


# --- deletion --------------------------------------------------------------------------


def test_a_deletion_is_an_empty_znode_for_each_topic() -> None:
    plan = delete_topics(cluster(), ["clicks", "clicks"])

    assert writes(plan) == [("create", "/admin/delete_topics/clicks", b"")]
    assert [write.path for write in plan.writes if write.kind is WriteKind.CHECK] == [
        "/brokers/topics/clicks"
    ]


def test_a_deletion_says_what_it_waits_for() -> None:
    moving = Reassignment((("clicks", 0, (0, 2)),)).encode()
    control = cluster(**{paths.broker(2): None, paths.REASSIGN_PARTITIONS: moving})

    assert delete_topics(control, ["clicks"]).notes == (
        "the deletion of clicks waits for brokers that are not registered: 2",
        "the deletion of clicks waits for its reassignment",
        "brokers carry it out if their delete.topic.enable is true; Kafka's default is false",
    )


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (paths.topic_deletion("clicks"), b""),
        (paths.DELETE_TOPICS, TopicDeletion(("clicks",)).encode()),
    ],
)
def test_a_deletion_in_progress_is_refused(path: str, data: bytes) -> None:
    """As shipped, and as the page has it: the topics in the data of the parent."""
    assert refusal(lambda: delete_topics(cluster(**{path: data}), ["clicks"])) == (
        "the deletion of clicks was requested and is not finished; wait until "
        "/admin/delete_topics/clicks is gone"
    )


def test_what_is_not_there_or_belongs_to_brokers_is_not_deleted() -> None:
    assert refusal(lambda: delete_topics(cluster(), ["clics"]), BadRequest) == (
        "there is no topic clics in the 0.8 layout; topics that are there: clicks"
    )
    assert refusal(lambda: delete_topics(cluster(), ["__consumer_offsets"]), BadRequest) == (
        "__consumer_offsets is a topic of the brokers themselves and cannot be deleted"
    )


# --- reassignment ----------------------------------------------------------------------


def test_a_reassignment_lists_what_moves_and_nothing_else() -> None:
    plan = reassign(cluster(), [("clicks", 0, (2, 1)), ("clicks", 1, (1, 2))])

    assert writes(plan) == [
        (
            *("create", "/admin/reassign_partitions"),
            b'{"partitions":[{"partition":0,"replicas":[2,1],"topic":"clicks"}],"version":1}',
        )
    ]
    assert plan.left_out == ("clicks/1 is on these brokers already",)
    first = plan.writes[0]
    assert (first.kind, first.path) == (WriteKind.CHECK, "/brokers/topics/clicks")


def test_an_empty_request_is_never_written() -> None:
    """A controller of 0.8 does not remove one, and it blocks all later requests."""
    plan = reassign(cluster(), [("clicks", 1, (1, 2))])

    assert (plan.writes, plan.left_out) == ((), ("clicks/1 is on these brokers already",))
    assert refusal(lambda: reassign(cluster(), []), BadRequest) == (
        "no partition is listed; name at least one"
    )


@pytest.mark.parametrize(
    ("move", "kind", "message"),
    [
        (
            ("views", 0, (0,)),
            BadRequest,
            "there is no topic views in the 0.8 layout; topics that are there: clicks",
        ),
        (("clicks", 7, (0,)), BadRequest, "clicks has no partition 7; it has 0, 1, 2"),
        (
            ("clicks", 0, (0, 8, 9)),
            Refused,
            "the assignment of clicks/0 names brokers 8, 9, not registered now; registered "
            "brokers: 0, 1, 2",
        ),
        (
            ("clicks", 1, (0, 1)),
            BadRequest,
            "clicks/1 is listed more than once; list it once",
        ),
    ],
)
def test_a_move_that_cannot_be_is_refused(
    move: tuple[str, int, tuple[int, ...]], kind: type[Refused], message: str
) -> None:
    """The whole request is refused: nothing is dropped in silence."""
    moves = [("clicks", 1, (2, 0)), move]

    assert refusal(lambda: reassign(cluster(), moves), kind) == message


def test_one_reassignment_at_a_time() -> None:
    pending = Reassignment((("clicks", 0, (1, 2)),)).encode()
    control = cluster(**{paths.REASSIGN_PARTITIONS: pending})

    assert refusal(lambda: reassign(control, [("clicks", 1, (2, 0))])) == (
        "a reassignment is in progress: 1 partition in /admin/reassign_partitions; wait until "
        "that znode is gone"
    )


def test_a_change_of_the_number_of_replicas_is_noted() -> None:
    assert reassign(cluster(), [("clicks", 0, (0,))]).notes == (
        "clicks/0 has 2 replicas now and 1 afterwards",
    )


def test_everything_moves_to_brokers_as_if_created_there() -> None:
    moves = moves_to(cluster(), [], [1, 2], start=0, shift=0)

    assert moves == (("clicks", 0, (1, 2)), ("clicks", 1, (2, 1)), ("clicks", 2, (1, 2)))
    assert refusal(lambda: moves_to(cluster(), [], [5], start=0, shift=0)) == (
        "--to names broker 5, not registered now; registered brokers: 0, 1, 2"
    )


def test_everything_moves_off_a_broker_also_a_dead_one() -> None:
    nodes = controlled(Shape(brokers=4, topics={"clicks": 3, "views": 4}))
    del nodes[paths.broker(3)]
    control = read_control_plane(snapshot(nodes))

    assert moves_off(control, [], [3]) == (
        ("clicks", 2, (2, 0)),
        ("views", 2, (2, 0)),
        ("views", 3, (1, 0)),
    )
    assert moves_off(control, ["clicks"], [3]) == (("clicks", 2, (2, 0)),)
    assert refusal(lambda: moves_off(control, [], [9]), BadRequest) == (
        "broker 9 is not registered and replicates nothing; check its id"
    )


def test_a_reassignment_is_done_in_progress_or_failed() -> None:
    pending = Reassignment((("clicks", 0, (1, 2)), ("clicks", 1, (0, 2)))).encode()
    control = cluster(**{paths.REASSIGN_PARTITIONS: pending})
    moves = [
        *(("clicks", 0, (1, 2)), ("clicks", 1, (0, 1)), ("clicks", 2, (2, 0))),
        *(("clicks", 2, (0, 2)), ("views", 0, (1,))),
    ]

    assert [(one.progress, one.reason) for one in verify(control, moves)] == [
        (Progress.IN_PROGRESS, "not in sync yet: 2"),
        (Progress.FAILED, "it is being moved to 0, 2 instead"),
        (Progress.DONE, "on 2, 0"),
        (Progress.FAILED, "on 2, 0, and no move to 0, 2 is pending"),
        (Progress.FAILED, "there is no such partition"),
    ]


# --- election --------------------------------------------------------------------------


def test_only_elections_that_can_succeed_are_requested() -> None:
    nodes = controlled(Shape(brokers=3, topics={"clicks": 6}))
    nodes[state_path("clicks", 0)] = (state(1, 0, 1), 0)
    nodes[state_path("clicks", 1)] = (state(2, 2), 0)
    nodes[state_path("clicks", 3)] = (b'{"lead', 0)
    del nodes[state_path("clicks", 4)], nodes[paths.broker(2)]
    nodes[state_path("clicks", 2)] = (state(0, 0), 0)
    nodes[state_path("clicks", 5)] = (state(0, 0), 0)
    control = read_control_plane(snapshot(nodes))

    plan = elect_preferred(control, [])

    assert writes(plan) == [
        (
            *("create", "/admin/preferred_replica_election"),
            b'{"partitions":[{"partition":0,"topic":"clicks"}],"version":1}',
        )
    ]
    assert plan.left_out == (
        "clicks/1 prefers broker 1, which is not in its ISR",
        "clicks/2 prefers broker 2, which is not registered",
        "clicks/3 has a state that does not parse",
        "clicks/4 has no state yet",
        "clicks/5 prefers broker 2, which is not registered",
    )


def test_nothing_is_requested_where_every_leader_is_preferred() -> None:
    plan = elect_preferred(cluster(), [("clicks", 0)])

    assert (plan.writes, plan.left_out) == (
        (),
        ("clicks/0 is led by its preferred replica, broker 0, already",),
    )
    everything = elect_preferred(cluster(), [])
    assert (everything.writes, everything.left_out) == ((), ())


def test_one_election_at_a_time_and_only_of_what_exists() -> None:
    pending = PreferredReplicaElection((("clicks", 0),)).encode()
    control = cluster(**{paths.PREFERRED_REPLICA_ELECTION: pending})

    assert refusal(lambda: elect_preferred(control, [])) == (
        "an election is in progress: 1 partition in /admin/preferred_replica_election; wait "
        "until that znode is gone"
    )
    assert refusal(lambda: elect_preferred(cluster(), [("clicks", 3)]), BadRequest) == (
        "clicks has no partition 3; it has 0, 1, 2"
    )


def test_topics_that_cannot_be_read_are_never_passed_over_in_silence() -> None:
    control = cluster(
        **{paths.topic("views"): b'{"parti', state_path("clicks", 0): state(1, 0, 1)}
    )

    plan = elect_preferred(control, [])
    assert plan.left_out == ("views has an assignment that does not parse",)
    assert plan.changes
    for moves in (
        lambda: moves_off(control, [], [0]),
        lambda: moves_to(control, [], [0, 1], start=0, shift=0),
    ):
        assert refusal(moves).startswith("/brokers/topics/views holds '")
    assert moves_off(control, ["clicks"], [0])


def test_nothing_else_is_requested_of_a_topic_that_is_being_deleted() -> None:
    control = cluster(
        **{paths.topic_deletion("clicks"): b"", state_path("clicks", 0): state(1, 0, 1)}
    )

    assert elect_preferred(control, []).left_out == (
        "clicks/0 belongs to a topic that is being deleted",
    )
    assert moves_off(control, ["clicks"], [0]) == (("clicks", 0, (2, 1)), ("clicks", 2, (2, 1)))
    assert moves_to(control, [], [0, 1], start=0, shift=0) == ()
    for act in (
        lambda: reassign(control, [("clicks", 0, (2, 1))]),
        lambda: configure(control, "clicks", {"flush.ms": "1"}, []),
    ):
        assert refusal(act).startswith("the deletion of clicks was requested and is not finished")


# --- settings --------------------------------------------------------------------------


def test_settings_are_set_and_removed_with_a_notification() -> None:
    config = TopicConfig((("flush.ms", "5"), ("retention.ms", "7"))).encode()
    control = cluster(**{paths.topic_config("clicks"): config, paths.CONFIG_CHANGES: b""})

    plan = configure(control, "clicks", {"segment.bytes": "1024"}, ["flush.ms"])

    assert writes(plan) == [
        (
            *("set", "/config/topics/clicks"),
            b'{"config":{"retention.ms":"7","segment.bytes":"1024"},"version":1}',
        ),
        ("create numbered", "/config/changes/config_change_", ConfigChange("clicks").encode()),
    ]
    assert plan.writes[0].version == 0
    assert plan.details == ("flush.ms: 5 -> none", "segment.bytes: none -> 1024")


def test_settings_of_a_topic_without_any_are_created() -> None:
    control = cluster(**{paths.topic_config("clicks"): None})

    plan = configure(control, "clicks", {"flush.ms": "5"}, [])

    assert [(kind, path) for kind, path, _ in writes(plan)] == [
        ("create", "/config"),
        ("create", "/config/topics"),
        ("create", "/config/topics/clicks"),
        ("create", "/config/changes"),
        ("create numbered", "/config/changes/config_change_"),
    ]


@pytest.mark.parametrize(
    ("values", "removed", "message"),
    [
        ({"retention.mss": "1"}, [], "a topic has no setting retention.mss; did you mean "),
        ({"x": "1"}, [], "a topic has no setting x; expected one of cleanup.policy, "),
        (
            {"segment.bytes": "1k"},
            [],
            "segment.bytes is '1k'; expected a whole number from 0 to 2147483647",
        ),
        (
            {"min.cleanable.dirty.ratio": "1.5"},
            [],
            "min.cleanable.dirty.ratio is '1.5'; expected a number from 0 to 1",
        ),
        ({"cleanup.policy": "Delete"}, [], "cleanup.policy is 'Delete'; expected delete or comp"),
        (
            {"unclean.leader.election.enable": "yes"},
            [],
            "unclean.leader.election.enable is 'yes'; expected true or false",
        ),
        ({}, ["flush.ms"], "clicks does not override flush.ms; it overrides: retention.ms"),
        (
            {"retention.ms": "1"},
            ["retention.ms"],
            "retention.ms is both set and removed; choose one",
        ),
    ],
)
def test_a_setting_that_is_not_one_is_refused(
    values: dict[str, str], removed: list[str], message: str
) -> None:
    config = TopicConfig((("retention.ms", "7"),)).encode()
    control = cluster(**{paths.topic_config("clicks"): config})

    said = refusal(lambda: configure(control, "clicks", values, removed), BadRequest)

    assert said.startswith(message)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("min.insync.replicas", ["1", "3"], ["0", "-1", "", "1.0", "²"]),
        ("retention.bytes", ["-1", "0", str(2**63 - 1)], [str(2**63), "-2", "1e3"]),
        ("min.cleanable.dirty.ratio", ["0", "0.5", "1", "1.0"], ["-0.1", "1.1", ".5", "nan"]),
        ("cleanup.policy", ["delete", "compact"], ["", "delete,compact"]),
        ("unclean.leader.election.enable", ["true", "false"], ["True", "1"]),
    ],
)
def test_values_of_a_setting(name: str, good: list[str], bad: list[str]) -> None:
    assert all(SETTINGS[name].accepts(value) for value in good)
    assert not any(SETTINGS[name].accepts(value) for value in bad)


def test_settings_that_are_so_already_are_not_written() -> None:
    """Nor is a notification, for which every broker would read them again."""
    config = TopicConfig((("retention.ms", "7"),)).encode()
    control = cluster(**{paths.topic_config("clicks"): config})

    plan = configure(control, "clicks", {"retention.ms": "7"}, [])

    assert (plan.writes, plan.left_out) == ((), ("clicks has these settings already",))
    assert overrides_of(control, "clicks") == {"retention.ms": "7"}


# --- what does not parse ---------------------------------------------------------------

ACTS: dict[str, Callable[[ControlPlane], Any]] = {
    "create": lambda control: create_topic(control, "views", {0: (0,)}, {}),
    "alter": lambda control: add_partitions(control, "clicks", 4, Growth.CONTINUED),
    "delete": lambda control: delete_topics(control, ["clicks"]),
    "reassign": lambda control: reassign(control, [("clicks", 0, (2, 1))]),
    "prefer": lambda control: elect_preferred(control, [("clicks", 0)]),
    "config": lambda control: configure(control, "clicks", {"flush.ms": "1"}, []),
    "verify": lambda control: verify(control, [("clicks", 0, (2, 1))]),
}
NEEDED = {
    "create": {paths.DELETE_TOPICS},
    "alter": {paths.DELETE_TOPICS, paths.REASSIGN_PARTITIONS, paths.topic("clicks")},
    "delete": {paths.DELETE_TOPICS, paths.topic("clicks")},
    "reassign": {paths.DELETE_TOPICS, paths.REASSIGN_PARTITIONS, paths.topic("clicks")},
    "prefer": {paths.PREFERRED_REPLICA_ELECTION, paths.topic("clicks")},
    "config": {paths.DELETE_TOPICS, paths.topic_config("clicks"), paths.topic("clicks")},
    "verify": {paths.REASSIGN_PARTITIONS, paths.topic("clicks")},
}
"""Command -> the znodes that it cannot do without."""
ZNODES = (
    *(paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.DELETE_TOPICS, paths.REASSIGN_PARTITIONS),
    *(paths.PREFERRED_REPLICA_ELECTION, paths.topic("clicks"), paths.topic_config("clicks")),
    state_path("clicks", 1),
)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("path", ZNODES)
def test_half_a_payload_stops_what_needs_it_and_nothing_else(act: str, path: str) -> None:
    control = cluster(**{path: b'{"version":1,"parti'})

    if path not in NEEDED[act]:
        assert ACTS[act](control) is not None
        return
    said = refusal(lambda: ACTS[act](control))

    assert said.startswith(f'{path} holds \'{{"version":1,"parti\'; expected ')
    assert said.endswith("; correct that znode first")


@given(st.sampled_from(ZNODES), st.binary(max_size=60), st.sampled_from(sorted(ACTS)))
@steady
def test_any_data_is_read_or_refused(path: str, data: bytes, act: str) -> None:
    """A plan is made or refused with a sentence; no other error escapes."""
    control = cluster(**{path: data})

    with suppress(Refused):
        ACTS[act](control)


# --- description -----------------------------------------------------------------------


def described() -> ControlPlane:
    return cluster(
        **{
            state_path("clicks", 0): state(1, 0, 1),
            state_path("clicks", 1): state(1, 1),
            state_path("clicks", 2): state(-1),
            paths.topic_config("clicks"): TopicConfig((("flush.ms", "5"),)).encode(),
        }
    )


def test_a_description_marks_what_is_amiss() -> None:
    [row] = describe(described())

    assert [(one.partition, one.leader, one.marks) for one in row.partitions] == [
        (0, 1, (Mark.NOT_PREFERRED,)),
        (1, 1, (Mark.UNDER_REPLICATED,)),
        (2, None, (Mark.UNAVAILABLE, Mark.UNDER_REPLICATED, Mark.NOT_PREFERRED)),
    ]
    assert row.overrides == (("flush.ms", "5"),)


@pytest.mark.parametrize(
    ("mark", "partitions"),
    [
        (Mark.UNAVAILABLE, [2]),
        (Mark.UNDER_REPLICATED, [1, 2]),
        (Mark.NOT_PREFERRED, [0, 2]),
    ],
)
def test_a_description_of_one_mark(mark: Mark, partitions: list[int]) -> None:
    [row] = describe(described(), only=[mark])

    assert [one.partition for one in row.partitions] == partitions
    assert describe(cluster(), only=[mark]) == ()


def test_topics_that_override_a_setting() -> None:
    assert [row.topic for row in describe(described(), with_overrides=True)] == ["clicks"]
    assert describe(cluster(), with_overrides=True) == ()


def test_a_leader_that_is_not_registered_is_unavailable() -> None:
    [row] = describe(cluster(**{paths.broker(1): None}), only=[Mark.UNAVAILABLE])

    assert [one.partition for one in row.partitions] == [1]


def test_what_does_not_parse_is_described_as_unknown() -> None:
    state_of_0 = state_path("clicks", 0)
    [row] = describe(cluster(**{state_of_0: b'{"lead'}))

    assert row.partitions[0].marks == ()
    [message] = row.unknown
    assert message.startswith(f"{state_of_0} holds ")
