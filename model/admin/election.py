"""Requests that the preferred replicas of partitions lead them again."""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.model.admin.plan import Plan, Refused, check, controller_notes, create
from watchkeeper.model.admin.validation import check_readable, the_partition
from watchkeeper.model.audit.control_plane import ControlPlane, PartitionView
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PreferredReplicaElection


def elect_preferred(control: ControlPlane, wanted: Sequence[tuple[str, int]]) -> Plan:
    """Request the election for these partitions, or wherever another replica leads.

    Kafka's tool requests it for every partition. One without a state in such a request makes the
    controller of 0.8, and each of its successors, fail; so partitions whose election cannot
    succeed are left out, each with its reason.
    """
    named = tuple(dict.fromkeys(wanted))
    others = (one for one in control.partitions() if not one.is_led_as_preferred)
    chosen = [the_partition(control, *one) for one in named] or list(others)
    _check_none_pending(control)
    reasons = {one.partition: _obstacle(control, one) for one in chosen}
    electable = [one for one in chosen if not reasons[one.partition]]
    unreadable = [one.name for one in control.topics.values() if one.is_unreadable]
    left_out = (
        *(f"{partition} {why}" for partition, why in reasons.items() if why),
        *(f"{name} has an assignment that does not parse" for name in unreadable if not named),
    )
    action = (
        f"request the election of the preferred replica of {counted(len(electable), 'partition')}"
    )
    if not electable:
        return Plan(action, left_out=left_out)
    request = PreferredReplicaElection(
        tuple((one.partition.topic, int(one.partition.name)) for one in electable)
    )
    topics = dict.fromkeys(one.partition.topic for one in electable)
    conditions = [
        check(control, paths.topic(name), f"the assignment of {name}") for name in topics
    ]
    writes = create(
        control,
        paths.PREFERRED_REPLICA_ELECTION,
        request.encode(),
        "another election was requested meanwhile; wait until it is done",
    )
    notes = controller_notes(control)
    return Plan(action, (*conditions, *writes), left_out=left_out, notes=notes)


def _check_none_pending(control: ControlPlane) -> None:
    check_readable(control, paths.PREFERRED_REPLICA_ELECTION)
    if control.election is not None:
        many = counted(len(control.election.partitions), "partition")
        raise Refused(
            f"an election is in progress: {many} in {paths.PREFERRED_REPLICA_ELECTION}; wait "
            "until that znode is gone"
        )


def _obstacle(control: ControlPlane, one: PartitionView) -> str:
    """Why a partition needs no election, or why one would fail; empty if it is due."""
    if one.partition.topic in control.deletions:
        return "belongs to a topic that is being deleted"
    if one.is_unreadable:
        return "has a state that does not parse"
    if one.state is None:
        return "has no state yet"
    if one.preferred is None:
        return "has no replica"
    if one.is_led_as_preferred:
        return f"is led by its preferred replica, broker {one.preferred}, already"
    if one.preferred not in control.brokers:
        return f"prefers broker {one.preferred}, which is not registered"
    if one.preferred not in one.isr:
        return f"prefers broker {one.preferred}, which is not in its ISR"
    return ""
