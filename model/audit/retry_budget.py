"""Whether the attempts of a rebalance can outlast a session that has died.

A dead member's claims stand until its session ends. Whoever wants its partitions tries so
many times, with a pause after each; if all of that is over while the claims still stand,
the partitions are left to nobody until something else happens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """The settings of a group that decide it; the defaults are Kafka's."""

    session_timeout_ms: int = 6000
    retries: int = 4
    backoff_ms: int = 2000

    def judge(self) -> tuple[str, str]:
        """A finding and a note, each a sentence, or empty."""
        lasts = self.retries * self.backoff_ms
        last = (self.retries - 1) * self.backoff_ms
        budget = f"{self.retries} attempts with {self.backoff_ms} ms between them"
        if lasts <= self.session_timeout_ms:
            enough = -(-(self.session_timeout_ms + 1) // self.backoff_ms)
            return (
                f"{budget} are over after {lasts} ms, but the claims of a dead member stand for "
                f"the {self.session_timeout_ms} ms of its session: a rebalance gives up before "
                f"it could succeed; allow at least {enough + 1} attempts",
                "",
            )
        if last <= self.session_timeout_ms:
            return (
                "",
                f"{budget} outlast a session of {self.session_timeout_ms} ms by the pause alone: "
                f"the last attempt begins {last} ms after the first, and ZooKeeper ends a "
                "session up to a tick late",
            )
        return "", ""
