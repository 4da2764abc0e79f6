"""The audit of a control plane: none of its faults is missed, and a healthy one has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.control_plane_faults import FAULTS, SHAPE, moving, set_state
from tests.support.registries import (
    CONTROL_PLANE_KINDS,
    Nodes,
    Shape,
    controlled,
    healthy,
    snapshot,
    state_path,
)
from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.audit.audit import Audit, audit
from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import (
    Controller,
    ControllerEpoch,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicConfig,
    TopicDeletion,
)


def found_in(nodes: Nodes) -> list[Finding]:
    """The findings that belong to no group."""
    return audit(snapshot(nodes)).findings


@given(
    st.builds(
        Shape,
        brokers=st.integers(1, 5),
        topics=st.dictionaries(st.sampled_from(["clicks", "a-b"]), st.integers(1, 12)),
    )
)
@steady
def test_a_healthy_control_plane_has_no_findings(shape: Shape) -> None:
    done = audit(snapshot(controlled(shape)))

    assert (done.findings, done.notes, done.verdict) == ([], [], Verdict.HOLDS)


def test_without_a_controller_leaders_are_not_judged_and_a_note_says_so() -> None:
    nodes = healthy(SHAPE)
    set_state(nodes, 0, isr=(0,))

    done = audit(snapshot(nodes))

    assert done.findings == []
    assert done.notes == [
        "no controller has been here (no /controller_epoch), so leaders and replicas are not "
        "judged"
    ]


# --- one fault each --------------------------------------------------------------------


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    nodes = controlled(SHAPE)
    FAULTS[name].change(nodes)

    done = audit(snapshot(nodes))

    said = [(finding.kind, finding.message) for finding in done.findings]
    assert (FAULTS[name].kind, FAULTS[name].message) in said
    assert done.verdict is Verdict.VIOLATED


def test_every_kind_of_finding_has_a_fault() -> None:
    assert {fault.kind for fault in FAULTS.values()} - {FindingKind.PERMANENT} == (
        CONTROL_PLANE_KINDS
    )


ALONE = [
    *("no controller", "no epoch", "follower not in sync", "partition without state"),
    *("state without assignment", "config without topic", "reassignment", "election"),
    *("deletion", "deletion of a topic that is gone", "imbalance", "epoch of the future"),
]


@pytest.mark.parametrize("name", ALONE)
def test_a_fault_without_consequences_is_the_only_finding(name: str) -> None:
    nodes = controlled(SHAPE)
    FAULTS[name].change(nodes)

    assert {finding.kind for finding in found_in(nodes)} == {FAULTS[name].kind}
    assert len(found_in(nodes)) == 1


# --- limits ----------------------------------------------------------------------------


def test_ten_percent_of_other_leaders_is_no_imbalance() -> None:
    """The limit is Kafka's: a controller rebalances leaders above it, not at it."""
    nodes = controlled(Shape(brokers=3, topics={"clicks": 30}))
    set_state(nodes, 0, leader=1)

    assert found_in(nodes) == []
    set_state(nodes, 3, leader=1)
    assert {finding.kind for finding in found_in(nodes)} == {FindingKind.LEADER_IMBALANCE}


def test_a_deletion_with_progress_is_a_note() -> None:
    """Its partitions lose their leaders one by one, and that is no fault of them."""
    nodes = controlled(SHAPE)
    nodes[paths.topic_deletion("clicks")] = (b"", 0)
    set_state(nodes, 0, leader=-1, isr=(1,))

    done = audit(snapshot(nodes))

    assert done.findings == []
    assert done.notes == ["clicks is being deleted: 1 of 6 partitions no longer have a leader"]


def test_a_replica_on_its_way_may_be_in_the_isr() -> None:
    nodes = controlled(SHAPE)
    moving(("clicks", 0, (0, 2)))(nodes)
    set_state(nodes, 0, isr=(0, 1, 2))

    assert {finding.kind for finding in found_in(nodes)} == {FindingKind.REASSIGNMENT}


# --- what does not parse ---------------------------------------------------------------

PAYLOADS = {
    paths.CONTROLLER: Controller(0).encode(),
    paths.REASSIGN_PARTITIONS: Reassignment((("clicks", 0, (1, 2)),)).encode(),
    paths.PREFERRED_REPLICA_ELECTION: PreferredReplicaElection((("clicks", 0),)).encode(),
    paths.DELETE_TOPICS: TopicDeletion(("clicks",)).encode(),
    paths.topic_config("clicks"): TopicConfig((("retention.ms", "5"),)).encode(),
    state_path("clicks", 0): PartitionState(0, (0, 1)).encode(),
    paths.topic("clicks"): controlled(SHAPE)[paths.topic("clicks")][0],
}


@pytest.mark.parametrize("path", PAYLOADS)
def test_half_a_payload_is_the_only_finding(path: str) -> None:
    """The znode is named, and nothing else is doubted or wrongly found."""
    nodes = controlled(SHAPE)
    data = PAYLOADS[path]
    nodes[path] = (data[: len(data) // 2], 0x100 if path == paths.CONTROLLER else 0)

    [finding] = found_in(nodes)

    assert (finding.kind, finding.path) == (FindingKind.BAD_PAYLOAD, path)
    assert finding.message.startswith(f"{path} holds '")


@pytest.mark.parametrize("data", [b"", b"x", b"-1", b"12345678901"])
def test_an_epoch_is_a_number(data: bytes) -> None:
    nodes = controlled(SHAPE) | {paths.CONTROLLER_EPOCH: (data, 0)}

    [finding] = found_in(nodes)

    assert finding.message.endswith("; expected the number of the present reign")


@given(st.sampled_from([*PAYLOADS, paths.CONTROLLER_EPOCH]), st.binary(max_size=40))
@steady
def test_any_data_is_audited(path: str, data: bytes) -> None:
    """Data is read, or it is found; the audit itself never fails."""
    nodes = controlled(SHAPE) | {path: (data, 0)}

    assert audit(snapshot(nodes)).verdict in (Verdict.HOLDS, Verdict.VIOLATED)


def test_requests_that_may_not_be_read_spoil_no_group() -> None:
    """Members never read them; the cluster is unknown, its groups are not."""
    whole = snapshot(controlled(SHAPE))
    seen = Snapshot(whole.nodes, unread={paths.REASSIGN_PARTITIONS: "may not be read"})

    done: Audit = audit(seen)

    assert done.verdict is Verdict.UNKNOWN
    assert [group.verdict for group in done.groups] == [Verdict.HOLDS]


def test_a_dead_leader_is_found_once_for_each_partition() -> None:
    """The group that reads the topic has a finding of its own."""
    nodes = controlled(SHAPE)
    del nodes[paths.broker(2)]

    dead = [one for one in found_in(nodes) if one.kind is FindingKind.DEAD_LEADER]

    assert [one.partition for one in dead] == ["clicks/2", "clicks/5"]
    assert len({(one.kind, one.message) for one in found_in(nodes)}) == len(found_in(nodes))
    [group] = audit(snapshot(nodes)).groups
    assert [one.kind for one in group.findings] == [FindingKind.NO_BROKER]


def test_the_epoch_is_written_as_a_bare_number() -> None:
    assert ControllerEpoch(7).encode() == b"7"
