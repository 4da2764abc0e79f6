"""The audit of what real members leave in the registry, member code and all, in simulation."""

from __future__ import annotations

import pytest

from watchkeeper import simulate
from watchkeeper.model.audit.audit import GroupAudit, audit
from watchkeeper.model.audit.finding import FindingKind
from watchkeeper.model.audit.snapshot import snapshot_after
from watchkeeper.model.properties.verdicts import Verdict


def audits(scenario: str, variant: str, until_s: float = 1e9) -> dict[str, GroupAudit]:
    """The audit of each group, at some moment of a run."""
    trace = simulate(scenario, seed=1, variant=variant).trace
    registry = snapshot_after(event for event in trace if event.t_us <= until_s * 1e6)
    assigned = "range_floor" if variant == "documented" else "range"
    if variant == "documented_ceil":
        assigned = "range_ceil"
    done = audit(registry, assignor=assigned)  # type: ignore[arg-type]
    assert done.findings == []
    return {group.name: group for group in done.groups}


EVERYWHERE = (
    "steady-join",
    "session-expiry",
    "new-topic-filter",
    "more-consumers-than-partitions",
)
CASES = [
    (name, variant) for name in EVERYWHERE for variant in ("hardened", "kafka_07", "kafka_08")
]
CASES += [("two-groups", "kafka_07"), ("two-groups", "hardened"), ("partition-added", "hardened")]


@pytest.mark.parametrize(("scenario", "variant"), CASES)
def test_a_group_at_rest_is_healthy(scenario: str, variant: str) -> None:
    groups = audits(scenario, variant)

    assert groups
    for group in groups.values():
        assert (group.verdict, group.findings, group.diff) == (Verdict.HOLDS, [], [])
        assert group.owners


def test_a_partition_that_no_member_noticed_is_found() -> None:
    """0.7.2 does not watch how many partitions a broker has."""
    [group] = audits("partition-added", "kafka_07").values()

    assert "no owner" in {finding.kind for finding in group.findings}


@pytest.mark.parametrize("variant", ["documented", "documented_ceil"])
def test_the_pages_groups_are_understood_too(variant: str) -> None:
    """They count consumers, and their owner znodes hold ids without a thread."""
    [group] = audits("steady-join", variant).values()

    assert (group.group.unit, group.findings, group.diff) == ("consumer", [], [])


def test_floor_leaves_partitions_to_no_member() -> None:
    [group] = audits("documented-floor-orphans", "documented").values()

    assert {finding.kind for finding in group.findings} == {"no owner"}
    assert all("no member is to have it" in finding.message for finding in group.findings)


def test_a_crash_shows_only_when_the_session_ends() -> None:
    """The limit of every look at a registry: until then the dead member is alive in it."""
    [group] = audits("consumer-crash", "hardened", until_s=14.5).values()

    assert (group.findings, len(group.members)) == ([], 3)


@pytest.mark.parametrize("scenario", ["controller-crash", "controller-epoch-reply-lost"])
def test_a_control_plane_at_rest_is_sound(scenario: str) -> None:
    """Nothing is wrong but that dead replicas have left ISRs, and that fewer brokers lead."""
    registry = snapshot_after(simulate(scenario, seed=1, variant="hardened").trace)
    found = {finding.kind for finding in audit(registry).findings}

    assert found <= {FindingKind.UNDER_REPLICATED, FindingKind.LEADER_IMBALANCE}
    assert FindingKind.UNDER_REPLICATED in found


def test_what_a_deposed_controller_leaves_is_found() -> None:
    """A partition without a leader and with an empty ISR, although a replica is alive."""
    for seed in range(10):
        result = simulate("controller-paused", seed=seed, variant="kafka_08")
        registry = snapshot_after(result.trace)
        found = {finding.kind for finding in audit(registry).findings}
        has_no_leader = "live leaders" in result.judgement.violated()

        assert (FindingKind.NO_LEADER in found) == has_no_leader
