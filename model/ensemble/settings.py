"""The settings of an ensemble, with ZooKeeper's own defaults where it has them."""

from __future__ import annotations

from msgspec import Struct


class EnsembleSettings(Struct, frozen=True, kw_only=True):
    """How an ensemble counts time, what it limits, and what it allows.

    Defaults are those of Apache ZooKeeper 3.9, but for the tick: half a second, so that tests
    wait for the end of a session for one second and not for four.
    """

    tick_ms: int = 500
    min_session_ms: int | None = None
    """The shortest session timeout; None for 2 ticks."""
    max_session_ms: int | None = None
    """The longest session timeout; None for 20 ticks."""
    sync_ticks: int = 4
    """How long a silent server counts as connected to its leader."""
    election_ms: int = 300
    """How long an election takes from the loss of the leader; 240 to 330 ms are measured."""
    most_frame_bytes: int = 0xFFFFF
    """The largest request (`jute.maxbuffer`)."""
    most_outstanding: int = 1000
    """Requests of one connection that wait for their turn before the server stops reading."""
    most_unread_bytes: int = 64 * 1024 * 1024
    """How much a client may leave unread before the server closes its connection."""
    connections_per_address: int = 60
    """How many connections one address may have to one server; 0 for any number."""
    connect_ms: int = 10_000
    """How long a connection may last without a session."""
    container_check_ms: int = 60_000
    """How often empty containers and znodes with a passed TTL are deleted."""
    read_only_mode: bool = False
    """Whether a server without a leader serves reads to clients that accept that
    (`readonlymode.enabled`, with the local sessions that it needs)."""
    extended_types: bool = True
    """Whether znodes may have a TTL; Apache's servers refuse it by default."""

    def __post_init__(self) -> None:
        shortest, longest = self.session_bounds_ms
        numbers = (self.tick_ms, self.sync_ticks, self.most_frame_bytes, self.container_check_ms)
        if min(numbers) < 1:
            raise ValueError(f"ticks, times and sizes are positive numbers, but here are {self}")
        if not 0 < shortest <= longest:
            raise ValueError(
                f"the shortest session timeout, {shortest} ms, must be positive and no longer "
                f"than the longest, {longest} ms"
            )

    @property
    def read_only_after_ms(self) -> int:
        """How long a server looks for a leader before it serves reads without one."""
        return max(2_000, self.tick_ms)

    @property
    def session_bounds_ms(self) -> tuple[int, int]:
        """The shortest and the longest session timeout."""
        shortest = 2 * self.tick_ms if self.min_session_ms is None else self.min_session_ms
        longest = 20 * self.tick_ms if self.max_session_ms is None else self.max_session_ms
        return shortest, longest

    def negotiated_ms(self, requested_ms: int) -> int:
        """The timeout that a session gets for the one that its client requests."""
        shortest, longest = self.session_bounds_ms
        return min(max(requested_ms, shortest), longest)
