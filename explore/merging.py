"""Processes that do the same from here on, once there are no more faults.

A note that was sent and not looked at is lost with the connection, and that is all that
tells it from one that the process has. Without faults no connection of a living session
breaks, and whoever is answered has all the notes that were sent before. So to one that
waits for an answer its notes may be given at once. One thing still counts then: which notes
were there when a batch was sent, since these are older than what it reads; a note which a
batch that is still to begin may overtake stays where it is, with all after it.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from explore.local import Local
from explore.process import Process
from model.inbox import says_nothing_new
from model.operations import Operation, Pipelined


def merged(process: Process, local: Local) -> Local:
    """The process that stands for all that do the same as this one."""
    if local.phase == "gone":
        return replace(local, life=0)
    if local.phase != "running" or local.link != "up" or not local.is_alive:
        return local
    ask = process.ask(local)
    if type(ask) is Pipelined:
        if not local.batch:
            heard = next(
                (at for at, one in enumerate(local.channel) if _is_read_again(one, ask)),
                len(local.channel),
            )
            return _having_heard(local, heard, local.known)
        return _having_heard(local, len(local.channel), _last_that_counts(local, ask))
    if isinstance(ask, Operation):
        return _having_heard(local, len(local.channel), local.known)
    return local


def _having_heard(local: Local, count: int, known: int) -> Local:
    if not count and known == local.known:
        return local
    inbox = (*local.inbox, *local.channel[:count])
    return replace(local, inbox=inbox, channel=local.channel[count:], known=known)


def _last_that_counts(local: Local, batch: Any) -> int:
    """How many notes are known to be older than the batch, up to the last that it reads again."""
    known = local.known
    while known and not _is_read_again(local.inbox[known - 1], batch):
        known -= 1
    return known


def _is_read_again(note: Any, batch: Any) -> bool:
    return any(says_nothing_new(note, part) for part in batch.operations)
