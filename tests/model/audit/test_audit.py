"""The audit of a registry: nothing is found in a healthy one, and every fault of a mutant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import HOME
from tests.support.registries import (
    CONTROL_PLANE_KINDS,
    GROUP,
    Nodes,
    Shape,
    healthy,
    session_of,
    snapshot,
)
from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.audit import Audit, GroupAudit, audit
from watchkeeper.model.audit.finding import KINDS
from watchkeeper.model.audit.retry_budget import RetryBudget, warnings_of
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.audit.what_if import BadChange, what_if
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.scenarios import from_text

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
    lambda shape: replace(shape, unit=Unit.CONSUMER, streams=tuple(1 for _ in shape.streams))
)


def audited(nodes: Nodes | Snapshot) -> Audit:
    return audit(nodes if isinstance(nodes, Snapshot) else snapshot(nodes))


def the_group(done: Audit) -> GroupAudit:
    return next(group for group in done.groups if group.name == GROUP)


def kinds(done: Audit) -> set[str]:
    """The kinds of everything that was found."""
    return {
        finding.kind
        for finding in [*done.findings, *(f for g in done.groups for f in g.findings)]
    }


@given(of_streams)
@steady
def test_a_healthy_registry_has_no_findings(shape: Shape) -> None:
    done = audited(healthy(shape))

    assert kinds(done) == set()
    assert done.verdict is Verdict.HOLDS
    assert the_group(done).diff == []


def test_nothing_at_all_is_healthy() -> None:
    assert audited({}).verdict is Verdict.HOLDS


# --- mutants ---------------------------------------------------------------------------


def claims(nodes: Nodes) -> list[str]:
    return [path for path in nodes if paths.parse_owner(path)]


def owner_of(nodes: Nodes, path: str) -> str:
    return nodes[path][0].decode()


def idle_too(before: Nodes, path: str) -> set[str]:
    """A member that loses its only claim owns nothing."""
    session = before[path][1]
    return (
        {"idle member"}
        if [before[claim][1] for claim in claims(before)].count(session) == 1
        else set()
    )


def no_owner(nodes: Nodes, path: str) -> set[str]:
    del nodes[path]
    return {"no owner"}


def of_another_session(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (nodes[path][0], 0x9999)
    return {"dead claim"}


def of_no_member(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (b"billing_gone-0", 0x9999)
    return {"dead claim"}


def not_ephemeral(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (nodes[path][0], 0)
    return {"dead claim"}


def unreadable(nodes: Nodes, path: str) -> set[str]:
    nodes[path] = (b"\xff\xfe", nodes[path][1])
    return {"bad payload"}


@pytest.mark.parametrize(
    "mutate", [no_owner, of_another_session, of_no_member, not_ephemeral, unreadable]
)
@given(shape=of_streams, which=st.integers(0, 999))
@steady
def test_a_broken_claim_is_found_and_nothing_else(
    mutate: Callable[[Nodes, str], set[str]], shape: Shape, which: int
) -> None:
    nodes = healthy(shape)
    path = claims(nodes)[which % len(claims(nodes))]
    also = idle_too(nodes, path)
    unit = shape.unit

    wanted = mutate(nodes, path)
    done = audited(nodes)

    if unit == "consumer" and not any(claim.member for claim in the_group(done).group.claims):
        return  # no claim is left that shows how the group names its owners
    assert kinds(done) == wanted | also
    assert done.verdict is Verdict.VIOLATED


def double(nodes: Nodes) -> set[str]:
    owner = "billing_c1-0"
    nodes[f"/consumers/{GROUP}/owners/clicks/1-0"] = (owner.encode(), session_of(1))
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
    path = paths.member(GROUP, "billing_c0")
    nodes[path] = (b"clicks", nodes[path][1])
    return {"bad payload"}


def bad_topic(nodes: Nodes) -> set[str]:
    nodes[paths.topic("clicks")] = (b'{"partitions": 3}', 0)
    return {"bad payload"}


def bad_state(nodes: Nodes) -> set[str]:
    nodes[paths.partition_state(Partition("clicks", "0"))] = (b"leader=1", 0)
    return {"bad payload"}


def bad_broker(nodes: Nodes) -> set[str]:
    path = paths.broker(1)
    nodes[path] = (b"somewhere", nodes[path][1])
    return {"bad payload"}


def broker_without_endpoints(nodes: Nodes) -> set[str]:
    path = paths.broker(1)
    nodes[path] = (b'{"version":2,"host":"b1","port":9092,"endpoints":[]}', nodes[path][1])
    return {"bad payload"}


def endpoints_of_no_use(nodes: Nodes) -> set[str]:
    path = paths.broker(1)
    data = b'{"version":1,"host":"b1","port":9092,"endpoints":["PLAINTEXT://b1:9092"]}'
    nodes[path] = (data, nodes[path][1])
    return {"bad payload"}


def assignment_of_another_version(nodes: Nodes) -> set[str]:
    path = paths.topic("clicks")
    nodes[path] = (nodes[path][0].replace(b'"version":1', b'"version":2'), 0)
    return {"bad payload"}


def bad_offset(nodes: Nodes) -> set[str]:
    nodes[paths.offset(GROUP, Partition("clicks", "0"))] = (b"12a", 0)
    return {"bad payload"}


def broker_gone(nodes: Nodes) -> set[str]:
    del nodes[paths.broker(1)]
    return {"no broker"}


def no_leader(nodes: Nodes) -> set[str]:
    path = paths.partition_state(Partition("clicks", "0"))
    nodes[path] = (PartitionState(-1, ()).encode(), 0)
    return {"no broker"}


def member_stays(nodes: Nodes) -> set[str]:
    path = paths.member(GROUP, "billing_c0")
    nodes[path] = (nodes[path][0], 0)
    return {"permanent registration", "dead claim", "idle member"}


def broker_stays(nodes: Nodes) -> set[str]:
    path = paths.broker(0)
    nodes[path] = (nodes[path][0], 0)
    return {"permanent registration"}


def member_gone(nodes: Nodes) -> set[str]:
    del nodes[paths.member(GROUP, "billing_c1")]
    return {"dead claim"}


MUTANTS = [
    double,
    stray,
    swapped,
    hoarded,
    bad_member,
    bad_topic,
    bad_state,
    bad_broker,
    broker_without_endpoints,
    endpoints_of_no_use,
    assignment_of_another_version,
    bad_offset,
    broker_gone,
    no_leader,
    member_stays,
    broker_stays,
    member_gone,
]


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_the_fault_of_a_mutant_is_found_and_nothing_else(
    mutate: Callable[[Nodes], set[str]],
) -> None:
    nodes = healthy(Shape())

    wanted = mutate(nodes)
    done = audited(nodes)

    assert kinds(done) == wanted
    assert done.verdict is Verdict.VIOLATED


def test_every_kind_of_finding_has_a_meaning_and_has_a_mutant() -> None:
    found = set().union(*(mutate(healthy(Shape())) for mutate in MUTANTS))

    over_time = {"stopped", "stalled", "falling behind", "set back"}
    elsewhere = {"no owner", "short patience", "no plan"} | over_time | CONTROL_PLANE_KINDS
    assert found | elsewhere == set(KINDS)


def test_the_page_names_every_kind_of_finding() -> None:
    page = (HOME / "docs/how-to/audit-a-cluster.md").read_text()

    assert [kind for kind in KINDS if f"\n| {kind} |" not in page] == []


def test_a_claim_says_whose_session_it_has() -> None:
    nodes = healthy(Shape())
    of_another_session(nodes, claims(nodes)[0])

    [found] = the_group(audited(nodes)).findings

    assert found.message == (
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
    assert "owners/clicks/0 (billing_c0-0)" in found.message
    assert "owners/clicks/1-0 (billing_c1-0)" in found.message


def test_a_topic_registered_in_both_layouts_is_reported() -> None:
    nodes = healthy(Shape())
    nodes[paths.topic_broker("clicks", 5)] = (b"1", 0x105)
    nodes[paths.broker(5)] = (b"h:h:9005", 0x105)

    done = the_group(audited(nodes))

    assert [row.layout for row in done.topics] == ["0.7 and 0.8"]
    assert any("in both layouts" in notification for notification in done.notes)
    assert [finding.partition for finding in done.findings if finding.kind == "no owner"] == [
        "clicks/5-0"
    ]


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
    path = paths.member(GROUP, "billing_c0")
    nodes[path] = (rb"*1*\Qclicks\E", nodes[path][1])

    done = the_group(audited(nodes))

    assert (done.verdict, done.findings, done.plan) == (Verdict.UNKNOWN, [], None)


def test_round_robin_refuses_unequal_subscriptions() -> None:
    nodes = healthy(Shape(topics={"clicks": 2, "views": 2}))
    path = paths.member(GROUP, "billing_c1")
    nodes[path] = (b'{ "clicks": 1 }', nodes[path][1])

    done = the_group(audit(snapshot(nodes), assignor="roundrobin"))

    assert "no plan" in {finding.kind for finding in done.findings}


def test_connections_are_counted_against_the_fewest() -> None:
    [row] = the_group(audited(healthy(Shape(layout="0.7", brokers=2, streams=(1, 1))))).topics

    assert (row.brokers, row.connections, row.least_connections) == (2, 2, 2)

    [row] = the_group(audited(healthy(Shape(brokers=2, streams=(1, 1))))).topics

    assert (row.brokers, row.connections, row.least_connections) == (2, 4, 2)


# --- what is not known -----------------------------------------------------------------


def doubtful(nodes: Nodes, **doubts: object) -> Audit:
    return audit(replace(snapshot(nodes), **doubts))  # type: ignore[arg-type]


def test_what_changed_while_it_was_read_is_unknown() -> None:
    path = paths.members(GROUP)

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
        (RetryBudget(), False, True),
        (RetryBudget(retries=3), True, False),
        (RetryBudget(session_timeout_ms=30_000), True, False),
        (RetryBudget(retries=5), False, False),
    ],
)
def test_attempts_have_to_outlast_a_session(
    patience: RetryBudget, is_short: bool, is_noted: bool
) -> None:
    done = audit(snapshot(healthy(Shape("0.7"))), patience=patience)

    assert ("short patience" in kinds(done), bool(done.notes)) == (is_short, is_noted)


# --- what if ---------------------------------------------------------------------------


def test_without_a_consumer_its_partitions_move() -> None:
    done = audited(healthy(Shape(streams=(1, 1))))
    group = the_group(done)

    what = what_if(done.census, group.group, group.owners, "range", ["consumer/c1"], [])

    assert what.moves == 2
    assert set(what.plan.values()) == {"billing_c0"}
    assert [str(step) for step in what.diff] == [
        "clicks/2: billing_c1 -> billing_c0",
        "clicks/3: billing_c1 -> billing_c0",
    ]


def test_without_a_broker_its_partitions_go_or_another_leads() -> None:
    old = audited(healthy(Shape(layout="0.7", topics={"clicks": 2})))
    group = the_group(old)
    what = what_if(old.census, group.group, group.owners, "range", ["broker/1"], [])

    assert {str(partition): name for partition, name in what.plan.items()} == {
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


# --- the same warning, before anything runs --------------------------------------------


def plan_with(variant: str, **config: int) -> Plan:
    """The plan of a group with these settings."""
    names = {
        "timeout": "zookeeper.session.timeout.ms",
        "retries": "rebalance.max.retries",
        "backoff": "rebalance.backoff.ms",
    }
    settings = ", ".join(f"{names[name]}: {value}" for name, value in config.items())
    text = (
        "name: mine\nabout: x\n"
        'clusters: {main: {layout: "0.8", brokers: 1, topics: {clicks: {partitions: 2}}}}\n'
        f"groups: {{billing: {{consumers: 2, streams: {{clicks: 1}}, config: {{{settings}}}}}}}\n"
    )
    return from_text("mine.yaml", text).plan(variant)


@pytest.mark.parametrize(
    ("timeout", "retries", "backoff"),
    [(6000, 4, 2000), (6000, 3, 2000), (30_000, 4, 2000), (6000, 5, 2000), (2000, 8, 1000)],
)
def test_a_run_warns_as_an_audit_does(timeout: int, retries: int, backoff: int) -> None:
    """One definition: what an audit says of a registry, a run says of its scenario."""
    budget = RetryBudget(timeout, retries, backoff)
    done = audit(snapshot(healthy(Shape("0.7"))), patience=budget)
    audited = [finding.message for finding in done.findings if finding.kind == "short patience"]

    plan = plan_with("kafka_08", timeout=timeout, retries=retries, backoff=backoff)
    warned = warnings_of(plan)

    assert [warning.message for warning in warned] == [*audited, *done.notes]
    assert {warning.name for warning in warned} <= {"short patience"}


def test_who_never_gives_up_is_not_warned() -> None:
    """`hardened` waits for the deletion of the claim."""
    assert warnings_of(plan_with("hardened", timeout=30_000, retries=1, backoff=100)) == ()


def test_the_dead_owner_may_be_any_other_member() -> None:
    """The longest session of the group decides, and each member with its own attempts."""
    plan = plan_with("kafka_08", timeout=4000, retries=4, backoff=2000)
    [group] = plan.groups
    first, second = group.consumers
    patient = replace(first.settings, session_timeout_ms=20_000, rebalance_retries=40)
    mixed = replace(group, consumers=(replace(first, settings=patient), second))

    [warning] = warnings_of(replace(plan, groups=(mixed,)))

    assert warning.message.startswith("4 attempts with 2000 ms between them are over after 8000")
