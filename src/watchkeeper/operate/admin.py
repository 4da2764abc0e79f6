"""One administrative command: read the cluster, make a plan, show it, carry it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from watchkeeper.console.credentials import Credentials
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop, print_json, reason_of
from watchkeeper.model.admin.plan import BadRequest, Plan, Refused
from watchkeeper.model.audit.control_plane import ControlPlane, read_control_plane
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.operate.audit.audit import Request, reader

if TYPE_CHECKING:
    from watchkeeper.real.client.snapshot import Reader

Payload = TypeVar("Payload")
Planner = Callable[[ControlPlane], Plan]


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster of a command, and how its result is printed."""

    hosts: str
    credentials: Credentials
    as_json: bool = False
    is_dry_run: bool = False
    """Whether the plan is shown and not carried out."""


@contextmanager
def opened(target: Target) -> Iterator[tuple[Reader, ControlPlane]]:
    """Read the control plane of a cluster; a refusal becomes a Stop with its sentence."""
    with reader(Request(target.hosts, None, credentials=target.credentials)) as connected:
        from watchkeeper.real.client.snapshot import ADMINISTRATION

        snapshot = connected.read_below(ADMINISTRATION)
        _check_there(snapshot, target)
        try:
            yield connected, read_control_plane(snapshot)
        except BadRequest as refused:
            raise Stop(USAGE, f"{refused}") from None
        except Refused as refused:
            raise Stop(VIOLATED, f"{refused}") from None


def _check_there(snapshot: Snapshot, target: Target) -> None:
    if not snapshot.nodes and not snapshot.unread:
        raise Stop(
            USAGE,
            f"there is no cluster at {target.hosts}: {paths.BROKER_IDS} is missing; is a chroot "
            "missing (host:port/chroot)?",
        )


def doubts_of(snapshot: Snapshot) -> list[str]:
    """Why a plan made from this snapshot might be wrong.

    Brokers change the states of partitions all the time, and no plan depends on one state alone.
    """
    rows = [f"{path} {why}" for path, why in sorted(snapshot.unread.items())]
    return rows + [
        f"{path} changed while it was read"
        for path in snapshot.changed
        if paths.parse_state(path) is None and not path.startswith(paths.CONFIG_CHANGES)
    ]


def change(target: Target, make: Planner) -> int:
    """Make a plan, show it, and carry it out unless it is a dry run."""
    with opened(target) as (connected, control):
        doubts = doubts_of(control.snapshot)
        if doubts:
            raise Stop(UNKNOWN, f"{doubts[0]}; nothing was written")
        plan = make(control)
        numbered: tuple[str, ...] = ()
        if plan.changes and not target.is_dry_run:
            numbered = _carry_out(connected, plan)
    show(target, plan, numbered)
    return HOLDS


def _carry_out(connected: Reader, plan: Plan) -> tuple[str, ...]:
    from watchkeeper.real.client.transaction import Unknown, carry_out

    try:
        return carry_out(connected, plan)
    except Unknown as error:
        raise Stop(UNKNOWN, str(error)) from None


# --- what is printed -------------------------------------------------------------------


def show(target: Target, plan: Plan, numbered: tuple[str, ...]) -> None:
    """Print a plan: what was written, or would be."""
    if target.as_json:
        print_json(plan_json(target, plan, numbered))
        return
    for line in plan_lines(target, plan):
        print(line)


def plan_lines(target: Target, plan: Plan) -> Iterator[str]:
    """The lines of a plan as text."""
    if not plan.changes:
        yield f"{plan.action}: nothing to change"
    elif target.is_dry_run:
        yield f"{plan.action}: would write, in one transaction"
        yield from (f"  {write}" for write in plan.writes)
    else:
        yield f"{plan.action}: written"
    for one in plan.placed:
        before = f"{_ids(one.before)} -> " if one.before else ""
        yield f"  {one.partition}: {before}{_ids(one.after)}"
    yield from (f"  {line}" for line in plan.details)
    yield from (f"  left out: {reason}" for reason in plan.left_out)
    yield from (f"note: {note}" for note in plan.notes)


def _ids(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))


def plan_json(target: Target, plan: Plan, numbered: tuple[str, ...]) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "action": plan.action,
        "dry_run": target.is_dry_run,
        "written": bool(plan.changes) and not target.is_dry_run,
        "writes": [write.to_json() for write in plan.writes],
        "numbered": list(numbered),
        "assignment": [
            {"partition": one.partition, "from": list(one.before), "to": list(one.after)}
            for one in plan.placed
        ],
        "details": list(plan.details),
        "left_out": list(plan.left_out),
        "notes": list(plan.notes),
    }


# --- files -----------------------------------------------------------------------------


def read_payload(file: Path, decode: Callable[[str, bytes | None], Payload]) -> Payload:
    """Read a file that has the form of a znode; a Stop says what is wrong with it."""
    try:
        return decode(str(file), file.read_bytes())
    except OSError as error:
        raise Stop(USAGE, f"{file} cannot be read: {reason_of(error)}") from None
    except BadPayload as error:
        raise Stop(USAGE, str(error)) from None
