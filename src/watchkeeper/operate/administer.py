"""The commands `topics`, `prefer`, `config` and `controller`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import randrange

from rich.console import Console

from watchkeeper.api.tables import console, plain_table, show_table
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop, print_json
from watchkeeper.model.admin.configuration import configure, overrides_of
from watchkeeper.model.admin.description import Mark, TopicRow, describe
from watchkeeper.model.admin.election import elect_preferred
from watchkeeper.model.admin.placement import Assignment, Growth, place
from watchkeeper.model.admin.topics import (
    add_partitions,
    add_partitions_as,
    create_topic,
    delete_topics,
)
from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PreferredReplicaElection
from watchkeeper.operate.admin import Target, change, doubts_of, opened, read_payload
from watchkeeper.operate.audit.report import controller_json, controller_line


def position(given: int | None, control: ControlPlane) -> int:
    """A start or a shift: as given, or random."""
    return randrange(max(len(control.brokers), 1)) if given is None else given


# --- topics ----------------------------------------------------------------------------


def create(
    target: Target,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    config: Sequence[str],
    start: int | None,
    shift: int | None,
) -> int:
    """Create a topic."""
    counts = {
        "--partitions": partitions,
        "--replication-factor": replication_factor,
        "--start": start,
        "--shift": shift,
    }
    overrides = pairs("--config", config)
    if replica_assignment is not None:
        refuse_beside("--replica-assignment", counts)
        whole = assignment_in(replica_assignment)
        return change(target, lambda control: create_topic(control, name, whole, overrides))
    if partitions is None or replication_factor is None:
        raise Stop(USAGE, "give --partitions and --replication-factor, or --replica-assignment")

    def placed(control: ControlPlane) -> Assignment:
        return place(
            control.brokers,
            partitions,
            replication_factor,
            start=position(start, control),
            shift=position(shift, control),
        )

    return change(target, lambda control: create_topic(control, name, placed(control), overrides))


def alter(
    target: Target,
    name: str,
    *,
    partitions: int | None,
    replica_assignment: str | None,
    placement: str | None,
) -> int:
    """Add partitions to a topic."""
    if replica_assignment is not None:
        refuse_beside(
            "--replica-assignment", {"--partitions": partitions, "--placement": placement}
        )
        whole = assignment_in(replica_assignment)
        return change(target, lambda control: add_partitions_as(control, name, whole))
    if partitions is None:
        raise Stop(USAGE, "give --partitions, or --replica-assignment")
    how = Growth.CONTINUED if placement is None else Growth(placement)
    return change(target, lambda control: add_partitions(control, name, partitions, how))


def delete(target: Target, names: Sequence[str]) -> int:
    """Request the deletion of topics."""
    return change(target, lambda control: delete_topics(control, names))


def show_topics(
    target: Target, names: Sequence[str], only: Sequence[Mark], *, with_overrides: bool
) -> int:
    """Describe topics."""
    with opened(target) as (_, control):
        rows = describe(control, names, only=only, with_overrides=with_overrides)
        doubts = [*doubts_of(control.snapshot), *(why for row in rows for why in row.unknown)]
    if target.as_json:
        print_json({"topics": [row.to_json() for row in rows], "unknown": doubts})
    else:
        to = console()
        if not rows:
            to.print("no topic is as described", soft_wrap=True)
        for row in rows:
            _show_topic(row, to)
        for doubt in doubts:
            to.print(f"unknown {doubt}", soft_wrap=True)
    return UNKNOWN if doubts else HOLDS


def _show_topic(row: TopicRow, to: Console) -> None:
    settings = ", ".join(f"{name}={value}" for name, value in row.overrides)
    shown = "" if len(row.partitions) == row.total else f"{len(row.partitions)} of "
    parts = [
        f"topic {row.topic}: {shown}{counted(row.total, 'partition')}",
        *([settings] if settings else []),
        *(["its deletion is requested"] if row.is_being_deleted else []),
    ]
    to.print("; ".join(parts), soft_wrap=True)
    table = plain_table("partition", "leader", "replicas", "isr", "epoch", "amiss")
    for one in row.partitions:
        table.add_row(
            str(one.partition),
            "none" if one.leader is None else str(one.leader),
            _ids(one.replicas),
            _ids(one.isr),
            "none" if one.leader_epoch is None else str(one.leader_epoch),
            ", ".join(one.marks),
        )
    if row.partitions:
        show_table(table, to)


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


# --- elections, settings, the controller -----------------------------------------------


def prefer(target: Target, partitions: Sequence[str], file: Path | None) -> int:
    """Request that preferred replicas lead."""
    if file is not None and partitions:
        raise Stop(USAGE, "give partitions or --file, not both")
    wanted = tuple(map(_partition, partitions))
    if file is not None:
        wanted = read_payload(file, PreferredReplicaElection.decode).partitions
        if not wanted:
            raise Stop(USAGE, f"{file} lists no partition; without --file all are meant")
    return change(target, lambda control: elect_preferred(control, wanted))


def _partition(text: str) -> tuple[str, int]:
    topic, slash, number = text.rpartition("/")
    if not slash or not topic or not number.isdecimal():
        raise Stop(USAGE, f"{text!r} is no partition; write topic/number, as in clicks/0")
    return topic, int(number)


def settings(target: Target, name: str, given: Sequence[str], removed: Sequence[str]) -> int:
    """Change the settings of a topic, or show them."""
    values = pairs("--set", given)
    if values or removed:
        return change(target, lambda control: configure(control, name, values, removed))
    if target.is_dry_run:
        raise Stop(USAGE, "--dry-run goes with --set or --unset")
    with opened(target) as (_, control):
        doubts = doubts_of(control.snapshot)
        if doubts:
            raise Stop(UNKNOWN, doubts[0])
        found = overrides_of(control, name)
    if target.as_json:
        print_json({"topic": name, "overrides": found})
        return HOLDS
    print(f"topic {name} overrides {counted(len(found), 'setting')}")
    for setting, value in found.items():
        print(f"  {setting}={value}")
    return HOLDS


def show_controller(target: Target) -> int:
    """Show the controller, its epoch, and since when it is the controller."""
    with opened(target) as (_, control):
        places = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)
        doubts = [control.bad[path] for path in places if path in control.bad]
        doubts += [doubt for doubt in doubts_of(control.snapshot) if doubt.startswith(places)]
    known = control.controller
    is_registered = known is not None and known.broker in control.brokers
    if target.as_json:
        found = controller_json(control) or {}
        print_json({**found, "registered": is_registered, "unknown": doubts})
    else:
        print(controller_line(control) if control.is_present else "no controller has been here")
        if known is not None and not is_registered:
            print(f"broker {known.broker} is not registered")
        for doubt in doubts:
            print(f"unknown {doubt}")
    if doubts:
        return UNKNOWN
    return HOLDS if is_registered else VIOLATED


# --- what is given ---------------------------------------------------------------------


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """The values of an option that is written key=value."""
    found: dict[str, str] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise Stop(USAGE, f"{option} {text!r} is not understood; write key=value")
        if key in found:
            raise Stop(USAGE, f"{option} gives {key} more than once; give it once")
        found[key] = value
    return found


def assignment_in(text: str) -> Assignment:
    """Partition -> replicas, in the words of Kafka's tool: `0:1,1:2` are two partitions."""
    rows = [part.split(":") for part in text.split(",")]
    if not all(number.isdecimal() and len(number) < 10 for row in rows for number in row):
        raise Stop(
            USAGE,
            f"--replica-assignment {text!r} is not understood; write the brokers of each "
            "partition with colons, and commas between partitions, as in 0:1,1:2",
        )
    return {index: tuple(map(int, row)) for index, row in enumerate(rows)}


def refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that would have no effect beside this one."""
    given = [
        name
        for name, value in others.items()
        if value is not None and value is not False and value != ()
    ]
    if given:
        raise Stop(USAGE, f"{given[0]} has no effect beside {option}; give one of them")
