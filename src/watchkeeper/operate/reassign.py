"""The command `reassign`: move partitions, compute moves, and see how far they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from watchkeeper.console.exit import (
    HOLDS,
    UNKNOWN,
    USAGE,
    VIOLATED,
    Stop,
    cannot_write,
    print_json,
)
from watchkeeper.model.admin.plan import Plan
from watchkeeper.model.admin.reassignment import (
    Move,
    Progress,
    Verified,
    moves_off,
    moves_to,
    reassign,
    verify,
)
from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.registry.payloads import Reassignment
from watchkeeper.operate.admin import Target, change, doubts_of, opened, read_payload
from watchkeeper.operate.administer import position, refuse_beside

EXIT = {Progress.DONE: HOLDS, Progress.IN_PROGRESS: UNKNOWN, Progress.FAILED: VIOLATED}


def by_file(target: Target, file: Path) -> int:
    """Move the partitions that a file lists."""
    moves = moves_in(file)
    return change(target, lambda control: reassign(control, moves))


def computed(
    target: Target,
    *,
    to: str | None,
    off: str | None,
    topics: Sequence[str],
    start: int | None,
    shift: int | None,
    save: Path | None,
) -> int:
    """Move everything, or these topics, to brokers or off brokers."""
    if off is not None:
        refuse_beside("--off", {"--to": to, "--start": start, "--shift": shift})
    wanted = broker_ids("--to", to) if to is not None else broker_ids("--off", off or "")

    def moves(control: ControlPlane) -> tuple[Move, ...]:
        if to is None:
            return moves_off(control, topics, wanted)
        begun = {"start": position(start, control), "shift": position(shift, control)}
        return moves_to(control, topics, wanted, **begun)

    def plan(control: ControlPlane) -> Plan:
        chosen = moves(control)
        if not chosen:
            return Plan("move 0 partitions")
        made = reassign(control, chosen)
        if save is not None:
            # First the file and then the request: what was requested can always be verified.
            _save(save, tuple(one for one in chosen if f"{one[0]}/{one[1]}" in _moved(made)))
        return made

    return change(target, plan)


def _moved(plan: Plan) -> set[str]:
    return {one.partition for one in plan.placed}


def _save(file: Path, moves: tuple[Move, ...]) -> None:
    fresh = file.with_name(f"{file.name}.new")
    try:
        fresh.write_bytes(Reassignment(moves).encode() + b"\n")
        os.replace(fresh, file)
    except OSError as error:
        raise cannot_write(file, error) from None


def verified(target: Target, file: Path) -> int:
    """Show how far the moves of a file are."""
    moves = moves_in(file)
    with opened(target) as (_, control):
        doubts = doubts_of(control.snapshot)
        if doubts:
            raise Stop(UNKNOWN, doubts[0])
        rows = verify(control, moves)
    if target.as_json:
        print_json({"partitions": [_row(one) for one in rows]})
    else:
        for one in rows:
            print(f"{one.partition}: {one.progress} ({one.reason})")
    codes = {EXIT[one.progress] for one in rows}
    return next(code for code in (VIOLATED, UNKNOWN, HOLDS) if code in codes)


def _row(one: Verified) -> dict[str, str]:
    return {"partition": one.partition, "progress": one.progress.value, "reason": one.reason}


def moves_in(file: Path) -> tuple[Move, ...]:
    """The moves that a file lists, in the JSON of Kafka's tool."""
    moves = read_payload(file, Reassignment.decode).moves
    if not moves:
        raise Stop(USAGE, f"{file} lists no partition; list at least one")
    return moves


def broker_ids(option: str, text: str) -> frozenset[int]:
    """Broker ids with commas between them."""
    parts = text.split(",")
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise Stop(USAGE, f"{option} {text!r} is not understood; write broker ids, as in 1,2,3")
    return frozenset(map(int, parts))
