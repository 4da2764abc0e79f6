"""How a follower cuts its log before it follows a leader: a rule for each version of Kafka.

A replica that becomes a follower may hold records that its new leader does not have. It has to
cut its log to what both have, and no further: what is committed has to survive. Each version
found the place in another way, and each way but the last one loses or keeps too much:

  high watermark   0.8 to 0.10  the follower's own high watermark, which lags behind the leader's
  KIP-101          0.11         where the follower's last epoch ends in the leader's log
  KIP-279          2.0          after the last record that both have
  fetch epochs     KIP-320's    the same, but whenever a fetch shows that the logs differ
                   first draft
  KIP-320          2.1          the same, once an epoch, and leader and follower have to be in
                                one epoch for everything that the one believes of the other
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from watchkeeper.model.replication.replica_log import (
    ReplicaLog,
    common_end,
    end_of_epoch,
    last_epoch,
)

CutAt = Callable[[ReplicaLog, ReplicaLog, int], int]
"""The follower's log, the leader's log, the follower's high watermark -> where to cut."""


class Agreement(Enum):
    """What a leader requires of a follower before it believes that both logs agree."""

    LEADER = "the follower follows this leader"
    LAST_RECORD = "the follower's last record has the epoch of the leader's at that offset"
    EPOCH = "leader and follower are in the same epoch"


class TruncationRule(NamedTuple):
    """The replication rules of one version, as far as truncation depends on them."""

    name: str
    since: str
    """The version of Kafka that has it."""
    cut_at: CutAt
    cuts_before_fetch: bool
    """Whether a follower cuts at any fetch, and not when it becomes a follower."""
    agreement: Agreement
    admits_after_own_epoch: bool
    """Whether a leader admits followers to the ISR only once its high watermark has reached the
    first record of its own epoch, or the end of its log."""


def _at_high_watermark(follower: ReplicaLog, leader: ReplicaLog, high_watermark: int) -> int:
    return high_watermark


def _at_end_of_epoch(follower: ReplicaLog, leader: ReplicaLog, high_watermark: int) -> int:
    """Where the last epoch of the follower ends at the leader; unknown there: high watermark."""
    if not follower:
        return 0
    end = end_of_epoch(leader, last_epoch(follower))
    return min(high_watermark if end is None else end, len(follower))


def _at_common_end(follower: ReplicaLog, leader: ReplicaLog, high_watermark: int) -> int:
    return common_end(follower, leader)


HIGH_WATERMARK = TruncationRule(
    "high watermark", "0.8", _at_high_watermark, False, Agreement.LEADER, False
)
KIP_101 = TruncationRule("KIP-101", "0.11", _at_end_of_epoch, False, Agreement.LEADER, False)
KIP_279 = TruncationRule("KIP-279", "2.0", _at_common_end, False, Agreement.LEADER, False)
FETCH_EPOCHS = TruncationRule(
    "fetch epochs", "never", _at_common_end, True, Agreement.LAST_RECORD, True
)
KIP_320 = TruncationRule("KIP-320", "2.1", _at_common_end, False, Agreement.EPOCH, True)

RULES = (HIGH_WATERMARK, KIP_101, KIP_279, FETCH_EPOCHS, KIP_320)
"""All rules, the oldest first."""
