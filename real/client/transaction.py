"""Carries a plan out: all of its writes in one transaction, or none.

Each write has its condition, so a plan is carried out only on the cluster that it was made for.
If ZooKeeper refuses one of them, that write says what has changed meanwhile.
"""

from __future__ import annotations

from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

from watchkeeper.model.admin.plan import Plan, Refused, Write, WriteKind
from watchkeeper.real.client.snapshot import Reader

CONFLICTS = (BadVersionError, NodeExistsError, NoNodeError)


class Unknown(Exception):
    """The connection was lost before the answer came: all was written, or nothing."""


def carry_out(reader: Reader, plan: Plan) -> tuple[str, ...]:
    """Write; return the paths of znodes that ZooKeeper has numbered.

    Raises Refused if ZooKeeper refuses a write, and Unknown if its answer is lost.
    """
    transaction = reader.client.transaction()
    for write in plan.writes:
        _add(transaction, write)
    try:
        answers = transaction.commit()
    except KazooException as error:
        raise Unknown(
            f"whether ZooKeeper has carried out '{plan.action}' is not known: the connection was "
            f"lost ({type(error).__name__}); look at the cluster before you repeat the command"
        ) from None
    for write, answer in zip(plan.writes, answers, strict=True):
        if isinstance(answer, Exception) and not _is_fallout(answer):
            raise Refused(f"{_reason(write, answer)}; nothing was written")
    return tuple(
        answer
        for write, answer in zip(plan.writes, answers, strict=True)
        if write.kind is WriteKind.CREATE_NUMBERED
    )


def _add(transaction: Any, write: Write) -> None:
    if write.kind is WriteKind.CHECK:
        transaction.check(write.path, write.version)
    elif write.kind is WriteKind.SET:
        transaction.set_data(write.path, write.data, version=write.version)
    else:
        is_numbered = write.kind is WriteKind.CREATE_NUMBERED
        transaction.create(write.path, write.data, sequence=is_numbered)


def _is_fallout(answer: Exception) -> bool:
    """Whether an answer only says that another write was refused."""
    return isinstance(answer, RolledBackError | RuntimeInconsistency)


def _reason(write: Write, error: Exception) -> str:
    if isinstance(error, NoAuthError):
        return f"{write.path} may not be written by this client; give its credentials by --auth"
    if isinstance(error, CONFLICTS) and write.conflict:
        return write.conflict
    return f"ZooKeeper refuses to {write.kind} {write.path} ({type(error).__name__})"
