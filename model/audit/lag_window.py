"""What the lag of a group over several audits says: does it read, and does it keep up?

One audit shows how many messages wait, and not whether that is a problem: a group that commits
once a minute is behind most of the time. So the audits of a watch are kept, a window of them for
each partition, and judged as Burrow judges the commits of a group:

  over the window                                        finding
  an offset becomes lower                                set back
  nothing waits at some moment                           none: the group has caught up
  the offset stays, and is never written                 stopped
  the offset stays, and is written again                 stalled
  the offset grows, and the lag never falls but grows    falling behind

Burrow sees each commit; a registry shows the last one alone. So a window is one of audits, at
equal distances, and a lag that stays the same is none here: a group with a slow timer shows it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from watchkeeper.model.audit.finding import Finding, FindingKind
from watchkeeper.model.properties.verdicts import counted


@dataclass(frozen=True, slots=True)
class LagSample:
    """One partition of a group in one audit."""

    at_ms: int
    committed: int
    committed_ms: int
    """When the offset was written last, by the clock of ZooKeeper."""
    lag: int
    """What waits in the log behind the offset: messages, or in 0.7 bytes."""


Key = tuple[str, str]
"""A group and a partition."""


class LagWindows:
    """The last audits of each partition of each group."""

    def __init__(self, audits: int) -> None:
        self._audits = audits
        self._windows: dict[Key, deque[LagSample]] = {}

    def add(self, samples: Mapping[Key, LagSample]) -> dict[Key, Finding]:
        """Add an audit, and return the findings of full windows.

        A partition without a sample begins anew: its broker has not answered, or it is gone.
        """
        self._windows = {
            key: self._windows.get(key) or deque(maxlen=self._audits) for key in samples
        }
        found = {}
        for key, sample in samples.items():
            window = self._windows[key]
            window.append(sample)
            if len(window) == self._audits and (finding := finding_of(key[1], [*window])):
                found[key] = finding
        return found


def finding_of(partition: str, window: Sequence[LagSample]) -> Finding | None:
    """Return what is amiss with a partition over a window; None if nothing is."""
    first, last = window[0], window[-1]
    pairs = list(itertools.pairwise(window))
    lower = next((pair for pair in pairs if pair[1].committed < pair[0].committed), None)
    since = f"{counted(len(window), 'audit')} in {(last.at_ms - first.at_ms) / 1000:.0f} s"
    if lower is not None:
        text = f"its offset went back from {lower[0].committed} to {lower[1].committed}"
        return _finding(FindingKind.SET_BACK, partition, text)
    if any(sample.lag <= 0 for sample in window):
        return None
    if last.committed == first.committed:
        is_written = last.committed_ms != first.committed_ms
        kind = FindingKind.STALLED if is_written else FindingKind.STOPPED
        how = "the same offset was written again" if is_written else "no offset was written"
        text = f"{how}, {last.committed}, and {last.lag} wait behind it ({since})"
        return _finding(kind, partition, text)
    if last.lag > first.lag and all(after.lag >= before.lag for before, after in pairs):
        text = f"it commits, and its lag has grown from {first.lag} to {last.lag} ({since})"
        return _finding(FindingKind.FALLING_BEHIND, partition, text)
    return None


def _finding(kind: FindingKind, partition: str, text: str) -> Finding:
    return Finding(kind, f"{partition}: {text}", partition=partition)
