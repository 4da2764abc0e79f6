"""The log of a replica: records, each with the epoch of the leader that appended it.

A batch that a leader appends gets that leader's epoch. Kafka stores the epoch with each
message since 0.11 (KIP-101); before, a replica knows offsets alone. The epochs of a log never
fall from one record to the next, so the last record of an epoch is found from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NO_EPOCH = -1
"""The epoch of a log without records, and of a replica that has heard of no leader."""


NO_NUMBER = -1
"""The number of a record whose message is that of another program."""


class Record(NamedTuple):
    """A message in a replica's log."""

    epoch: int
    """The epoch of the leader that appended it."""
    number: int
    """Its identity: no two messages of producers have the same number."""
    message: bytes = b""
    """A message with a content, which the brokers write themselves: a message set of 0.8.

    Under `NO_NUMBER` it is the message of another program as it came, from its CRC on.
    """

    @property
    def is_hidden(self) -> bool:
        """Whether its offset has no entry of its own: it is compressed with a later one."""
        return self.number == NO_NUMBER and not self.message


HIDDEN = Record(NO_EPOCH, NO_NUMBER)
"""The record at an offset without an entry. Compaction leaves such offsets too."""


ReplicaLog = tuple[Record, ...]
"""The records of a replica; the offset of a record is its place, from 0."""


def last_epoch(log: Sequence[Record]) -> int:
    """Return the epoch of the last record; NO_EPOCH where there is none."""
    return log[-1].epoch if log else NO_EPOCH


def end_of_epoch(log: Sequence[Record], epoch: int) -> int | None:
    """Return the offset at which an epoch ends in a log, as a leader answers it since KIP-101.

    That is the end of the log for its last epoch, else the first offset of a greater epoch.
    None where the log is empty or every record has a smaller epoch.
    """
    if log and last_epoch(log) == epoch:
        return len(log)
    return next((offset for offset, record in enumerate(log) if record.epoch > epoch), None)


def common_end(log: ReplicaLog, other: ReplicaLog) -> int:
    """Return the offset after the last record that both logs have at the same offset."""
    shared = range(min(len(log), len(other)))
    return next((at + 1 for at in reversed(shared) if log[at] == other[at]), 0)


def epoch_up_to(log: Sequence[Record], epoch: int) -> tuple[int, int]:
    """Return the greatest epoch in a log that is not above this one, and where it ends.

    A leader answers that since KIP-279. NO_EPOCH and 0 where every record has a greater epoch.
    """
    end = next(
        (at + 1 for at in reversed(range(len(log))) if log[at].epoch <= epoch),
        0,
    )
    return (log[end - 1].epoch if end else NO_EPOCH), end
