"""The audit of a registry: nothing is found in a healthy one, and every planted fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import registry
from model.asks import Partition
from model.audit import Audit, GroupAudit, audit
from model.findings import KINDS
from model.patience import Patience
from model.payloads import PartitionState
from model.snapshot import Snapshot
from model.verdicts import Verdict
from model.whatif import BadChange, what_if
from tests.audited import GROUP, Nodes, Shape, healthy, session_of, snapshot
from tests.registry_samples import steady

shapes = st.builds(
    Shape,
    layout=st.sampled_from(["0.7", "0.8"]),
    brokers=st.integers(1, 4),
    topics=st.dictionaries(
        st.sampled_from(["clicks", "views", "a-b"]), st.integers(1, 12), min_size=1
    ),
    streams=st.lists(st.integers(1, 12), min_size=1, max_size=5).map(tuple),
)
of_streams = shapes | shapes.map(
    lambda shape: replace(shape, unit="consumer", streams=tuple(1 for _ in shape.streams))
)


def audited(nodes: Nodes | Snapshot) -> Audit:
    return audit(nodes if isinstance(nodes, Snapshot) else snapshot(nodes))


def the_group(done: Audit) -> GroupAudit:
    return next(one for one in done.groups if one.name == GROUP)


def kinds(done: Audit) -> set[str]:
    """The kinds of everything that was found."""
    return {one.kind for one in [*done.findings, *(f for g in done.groups for f in g.findings)]}


@given(of_streams)
@steady
def test_a_healthy_registry_has_no_findings(shape: Shape) -> None:
    done = audited(healthy(shape))

    assert kinds(done) == set()
    assert done.verdict is Verdict.HOLDS
    assert the_group(done).diff == []


def test_nothing_at_all_is_healthy() -> None:
    assert audited({}).verdict is Verdict.HOLDS


# --- planted faults --------------------------------------------------------------------


def claims(nodes: Nodes) -> list[str]:
    return [path for path in nodes if registry.parse_owner(path)]


def owner_of(nodes: Nodes, path: str) -> str:
    return nodes[path][0].decode()


def idle_too(before: Nodes, path: str) -> set[str]:
    """A member that loses its only claim owns nothing."""
    session = before[path][1]
    return (
        {"idle member"}
        if [before[one][1] for one in claims(before)].count(session) == 1
        else set()
    )


def no_owner(nodes: Nodes, path: str) -> set[str]:
    del nodes[path]
    return {"no owner"}


def of_another_session(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (nodes[path][0], 0x9999)
    return {"dead claim"}


def of_nobody(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (b"billing_gone-0", 0x9999)
    return {"dead claim"}


def not_ephemeral(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (nodes[path][0], 0)
    return {"dead claim"}


def unreadable(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (b"\xff\xfe", nodes[path][1])
    return {"bad payload"}


@pytest.mark.parametrize(
    "plant", [no_owner, of_another_session, of_nobody, not_ephemeral, unreadable]
)
@given(shape=of_streams, which=st.integers(0, 999))
@steady
def test_a_broken_claim_is_found_and_nothing_else(
    plant: Callable[[Nodes, str], set[str]], shape: Shape, which: int
) -> None:
    nodes = healthy(shape)
    path = claims(nodes)[which % len(claims(nodes))]
    also = idle_too(nodes, path)
    unit = shape.unit

    wanted = plant(nodes, path)
    done = audited(nodes)

    if unit == "consumer" and not any(one.member for one in the_group(done).group.claims):
        return  # no claim is left that shows how the group names its owners
    assert kinds(done) == wanted | also
    assert done.verdict is Verdict.VIOLATED


def double(nodes: Nodes) -> set[str]:
    other = "billing_c1-0"
    nodes[f"/consumers/{GROUP}/owners/clicks/1-0"] = (other.encode(), session_of(1))
    return {"double claim"}


def stray(nodes: Nodes) -> set[str]:
    nodes[f"/consumers/{GROUP}/owners/clicks/77"] = (b"billing_c1-0", session_of(1))
    return {"stray claim"}


def swapped(nodes: Nodes) -> set[str]:
    first, last = claims(nodes)[0], claims(nodes)[-1]
    nodes[first], nodes[last] = nodes[last], nodes[first]
    return {"unsettled"}


def hoarded(nodes: Nodes) -> set[str]:
    for path in claims(nodes):
        nodes[path] = (b"billing_c0-0", session_of(0))
    return {"unsettled", "idle member", "imbalance"}


def bad_member(nodes: Nodes) -> set[str]:
    path = registry.member(GROUP, "billing_c0")
    nodes[path] = (b"clicks", nodes[path][1])
    return {"bad payload"}


def bad_topic(nodes: Nodes) -> set[str]:
    nodes[registry.topic("clicks")] = (b'{"partitions": 3}', 0)
    return {"bad payload"}


def bad_state(nodes: Nodes) -> set[str]:
    nodes[registry.partition_state(Partition("clicks", "0"))] = (b"leader=1", 0)
    return {"bad payload"}


def bad_broker(nodes: Nodes) -> set[str]:
    path = registry.broker(1)
    nodes[path] = (b"somewhere", nodes[path][1])
    return {"bad payload"}


def bad_offset(nodes: Nodes) -> set[str]:
    nodes[registry.offset(GROUP, Partition("clicks", "0"))] = (b"12a", 0)
    return {"bad payload"}


def broker_gone(nodes: Nodes) -> set[str]:
    del nodes[registry.broker(1)]
    return {"no broker"}


def no_leader(nodes: Nodes) -> set[str]:
    path = registry.partition_state(Partition("clicks", "0"))
    nodes[path] = (PartitionState(-1, ()).encode(), 0)
    return {"no broker"}


def member_stays(nodes: Nodes) -> set[str]:
    path = registry.member(GROUP, "billing_c0")
    nodes[path] = (nodes[path][0], 0)
    return {"permanent registration", "dead claim", "idle member"}


def broker_stays(nodes: Nodes) -> set[str]:
    path = registry.broker(0)
    nodes[path] = (nodes[path][0], 0)
    return {"permanent registration"}


def member_gone(nodes: Nodes) -> set[str]:
    del nodes[registry.member(GROUP, "billing_c1")]
    return {"dead claim"}


PLANTS = [
    double,
    stray,
    swapped,
    hoarded,
    bad_member,
    bad_topic,
    bad_state,
    bad_broker,
    bad_offset,
    broker_gone,
    no_leader,
    member_stays,
    broker_stays,
    member_gone,
]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_and_nothing_else(plant: Callable[[Nodes], set[str]]) -> None:
    nodes = healthy(Shape())

    wanted = plant(nodes)
    done = audited(nodes)

    assert kinds(done) == wanted
    assert done.verdict is Verdict.VIOLATED


def test_every_kind_of_finding_has_a_meaning_and_is_planted() -> None:
    planted = set().union(*(plant(healthy(Shape())) for plant in PLANTS))

    assert planted | {"no owner", "short patience", "no plan"} == set(KINDS)


def test_the_page_names_every_kind_of_finding() -> None:
    page = (Path(__file__).parent.parent / "docs/how-to/audit-a-cluster.md").read_text()

    assert [kind for kind in KINDS if f"\n| {kind} |" not in page] == []


def test_a_claim_says_whose_session_it_has() -> None:
    nodes = healthy(Shape())
    of_another_session(nodes, claims(nodes)[0])

    [found] = the_group(audited(nodes)).findings

    assert found.said == (
        "the claim on clicks/0 names billing_c0 but belongs to session 0x9999, while that "
        "consumer is registered by session 0x1000"
    )
    assert found.path == f"/consumers/{GROUP}/owners/clicks/0"


# --- two layouts side by side ----------------------------------------------------------


def test_a_broker_in_the_name_is_another_name_of_the_number() -> None:
    """The claims that a client made under its leader's id, when the leader has moved."""
    nodes = healthy(Shape())
    double(nodes)

    [found] = the_group(audited(nodes)).findings

    assert found.partition == "clicks/0"
    assert "owners/clicks/0 (billing_c0-0)" in found.said
    assert "owners/clicks/1-0 (billing_c1-0)" in found.said


def test_a_topic_registered_in_both_layouts_is_told_of() -> None:
    nodes = healthy(Shape())
    nodes[registry.topic_broker("clicks", 5)] = (b"1", 0x105)
    nodes[registry.broker(5)] = (b"h:h:9005", 0x105)

    done = the_group(audited(nodes))

    assert [row.layout for row in done.topics] == ["0.7 and 0.8"]
    assert any("in both layouts" in note for note in done.notes)
    assert [one.partition for one in done.findings if one.kind == "no owner"] == ["clicks/5-0"]


def test_a_member_too_many_is_no_fault() -> None:
    done = the_group(audited(healthy(Shape(topics={"clicks": 1}))))

    assert done.findings == []
    assert done.notes == ["billing_c1 owns nothing: there is no partition left for it"]


def test_a_group_without_members_keeps_its_offsets() -> None:
    nodes = {p: n for p, n in healthy(Shape()).items() if "/ids/b" not in p and "owners" not in p}

    done = the_group(audited(nodes))

    assert done.verdict is Verdict.HOLDS
    assert done.notes == ["no member is registered; offsets of 4 partitions are kept"]


def test_a_filter_that_java_reads_otherwise_makes_the_group_unknown() -> None:
    nodes = healthy(Shape())
    path = registry.member(GROUP, "billing_c0")
    nodes[path] = (rb"*1*\Qclicks\E", nodes[path][1])

    done = the_group(audited(nodes))

    assert (done.verdict, done.findings, done.plan) == (Verdict.UNKNOWN, [], None)


def test_round_robin_refuses_unequal_subscriptions() -> None:
    nodes = healthy(Shape(topics={"clicks": 2, "views": 2}))
    path = registry.member(GROUP, "billing_c1")
    nodes[path] = (b'{ "clicks": 1 }', nodes[path][1])

    done = the_group(audit(snapshot(nodes), assignor="roundrobin"))

    assert "no plan" in {one.kind for one in done.findings}


def test_connections_are_counted_against_the_fewest() -> None:
    [row] = the_group(audited(healthy(Shape(layout="0.7", brokers=2, streams=(1, 1))))).topics

    assert (row.brokers, row.connections, row.least_connections) == (2, 2, 2)

    [row] = the_group(audited(healthy(Shape(brokers=2, streams=(1, 1))))).topics

    assert (row.brokers, row.connections, row.least_connections) == (2, 4, 2)


# --- what is not known -----------------------------------------------------------------


def doubtful(nodes: Nodes, **doubts: object) -> Audit:
    return audit(replace(snapshot(nodes), **doubts))  # type: ignore[arg-type]


def test_what_changed_while_it_was_read_is_unknown() -> None:
    path = registry.members(GROUP)

    done = doubtful(healthy(Shape()), changed=(path,))

    assert done.verdict is Verdict.UNKNOWN
    assert the_group(done).doubts == [f"{path} changed while it was read"]


def test_a_group_that_may_not_be_read_spoils_no_other() -> None:
    nodes = healthy(Shape())
    no_owner(nodes, claims(nodes)[0])

    done = doubtful(nodes, unread={"/consumers/secret/ids": "may not be read"})

    assert the_group(done).doubts == []
    assert done.verdict is Verdict.VIOLATED


def test_topics_that_may_not_be_read_make_everything_unknown() -> None:
    done = doubtful(healthy(Shape()), unread={"/brokers/topics/clicks": "may not be read"})

    assert done.verdict is Verdict.UNKNOWN


# --- patience --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patience", "is_short", "is_noted"),
    [
        (Patience(), False, True),
        (Patience(retries=3), True, False),
        (Patience(session_timeout_ms=30_000), True, False),
        (Patience(retries=5), False, False),
    ],
)
def test_attempts_have_to_outlast_a_session(
    patience: Patience, is_short: bool, is_noted: bool
) -> None:
    done = audit(snapshot(healthy(Shape())), patience=patience)

    assert ("short patience" in kinds(done), bool(done.notes)) == (is_short, is_noted)


# --- what if ---------------------------------------------------------------------------


def test_without_a_consumer_its_partitions_move() -> None:
    done = audited(healthy(Shape(streams=(1, 1))))
    group = the_group(done)

    what = what_if(done.census, group.group, group.owners, "range", ["consumer/c1"], [])

    assert what.moves == 2
    assert set(what.plan.values()) == {"billing_c0"}
    assert [str(one) for one in what.diff] == [
        "clicks/2: billing_c1 -> billing_c0",
        "clicks/3: billing_c1 -> billing_c0",
    ]


def test_without_a_broker_its_partitions_go_or_another_leads() -> None:
    old = audited(healthy(Shape(layout="0.7", topics={"clicks": 2})))
    group = the_group(old)
    what = what_if(old.census, group.group, group.owners, "range", ["broker/1"], [])

    assert {str(one): name for one, name in what.plan.items()} == {
        "clicks/0-0": "billing_c0",
        "clicks/0-1": "billing_c1",
    }

    new = audited(healthy(Shape()))
    group = the_group(new)
    what = what_if(new.census, group.group, group.owners, "range", ["broker/1"], [])

    assert (what.moves, what.notes) == (0, ())
    assert what.connections == (("clicks", 2, 2),)


def test_newcomers_take_their_share() -> None:
    done = audited(healthy(Shape(topics={"clicks": 8})))
    group = the_group(done)

    what = what_if(done.census, group.group, group.owners, "range", [], ["2 consumers"])

    assert len(set(what.plan.values())) == 4
    assert (what.changes, what.moves) == (("with 2 consumers",), 6)
    assert list(group.group.members) == ["billing_c0", "billing_c1"]


@pytest.mark.parametrize(
    ("without", "joining"),
    [("broker/9", ""), ("consumer/x", ""), ("consumer/billing", ""), ("2", ""), ("", "more")],
)
def test_a_change_that_makes_no_sense_is_refused(without: str, joining: str) -> None:
    done = audited(healthy(Shape()))
    group = the_group(done)

    with pytest.raises(BadChange):
        what_if(
            done.census,
            group.group,
            group.owners,
            "range",
            [without] if without else [],
            [joining] if joining else [],
        )
