"""What a test does with a ZooKeeper: connect clients, inject faults, read the history.

Every verb returns a `Fault` with what it has struck. Times are in seconds. A server is its
number, from 1, or its role, "leader" or "follower". A session is its number, or a client that
has it. A path is one below the chroot of this handle; an asterisk in it stands for any text.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol

from watchkeeper.console.extras import needing
from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.model.trace.trace import Row
from watchkeeper.testing.fault import Fault
from watchkeeper.testing.history import History

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from watchkeeper.real.python_zookeeper.clients import Clients

POLL_S = 0.01
LEADER_S = 15.0


class Servers(Protocol):
    """A running ensemble, in this process or in one of its own."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""

    def do(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a verb of `model.ensemble.control`."""


class HasSession(Protocol):
    """A client, as kazoo's is one: its session is the first of the two."""

    client_id: tuple[int, bytes] | None


Session = int | HasSession
ServerName = int | str


class Handle:
    """A ZooKeeper as one test sees it."""

    def __init__(self, servers: Servers, *, name: str = "zookeeper", chroot: str = "") -> None:
        """`name` is in the header of the history."""
        self.servers = servers
        self._name = name
        self.chroot = chroot
        """The znode below which its clients are; empty for the root."""
        self._clients: Clients | None = None
        self._faults: list[Fault] = []

    def _do(self, verb: str, **arguments: Any) -> Any:
        return self.servers.do(verb, arguments)

    # --- clients -----------------------------------------------------------------------

    @property
    def hosts(self) -> str:
        """The connection string: the addresses of all servers, and the chroot."""
        return ",".join(self.servers.addresses) + self.chroot

    def hosts_of(self, server: ServerName) -> str:
        """The connection string for one server alone."""
        return self.servers.addresses[self._number(server) - 1] + self.chroot

    def client(self, *, server: ServerName | None = None, **options: Any) -> KazooClient:
        """Return a started KazooClient, which is stopped at the end.

        With `server` it knows that server alone. The other options are those of KazooClient.
        """
        with needing("a client for a test"):
            from watchkeeper.real.python_zookeeper.clients import Clients
        self._clients = self._clients or Clients()
        hosts = self.hosts if server is None else self.hosts_of(server)
        return self._clients.start(hosts, **options)

    @property
    def sessions(self) -> dict[int, float]:
        """The sessions that live, in the order of their begin: number -> timeout in seconds."""
        known: dict[str, int] = self._do("sessions")
        return {int(number): timeout_ms / 1000 for number, timeout_ms in known.items()}

    @property
    def history(self) -> History:
        """The trace of what was requested from the begin of this handle until now.

        It has at most the latest 100,000 events.
        """
        rows: list[Row] = [tuple(row) for row in self._do("history")]
        return History(self._name, rows)

    # --- sessions and connections ------------------------------------------------------

    def expire(self, session: Session) -> Fault:
        """End a session as if its client had been silent for its whole timeout."""
        return self._inject("expire", session=_number_of(session))

    def disconnect(self, session: Session | None = None, *, for_s: float = 0.0) -> Fault:
        """Close the connection of a session, or all of them.

        With `for_s` the session, or every client, gets no other one for so long.
        """
        return self._inject("disconnect", session=_number_of(session), for_s=for_s)

    def delay(self, by_s: float, session: Session | None = None) -> Fault:
        """Deliver everything so much later in both directions, until the fault is ended."""
        return self._inject("delay", by_s=by_s, session=_number_of(session))

    # --- requests and replies ----------------------------------------------------------

    def drop_next_reply(
        self,
        path: str | None = None,
        *,
        operation: str | None = None,
        session: Session | None = None,
    ) -> Fault:
        """Execute the next request that fits, and close its connection in place of a reply.

        `operation` is a word as in traces: "create", "set", "delete", "multi", "get", ...
        """
        return self._inject(
            "drop_next_reply",
            path=self._path(path),
            operation=operation,
            session=_number_of(session),
        )

    def lose_next_request(
        self,
        path: str | None = None,
        *,
        operation: str | None = None,
        session: Session | None = None,
        lands_after_s: float | None = None,
    ) -> Fault:
        """Close the connection of the next request that fits, before it is executed.

        With `lands_after_s` it is executed after all, so much later: a late request.
        """
        return self._inject(
            "lose_next_request",
            path=self._path(path),
            operation=operation,
            session=_number_of(session),
            lands_after_s=lands_after_s,
        )

    # --- servers -----------------------------------------------------------------------

    @property
    def leader(self) -> int | None:
        """The number of the server that leads, or of the only one; None if there is none."""
        for server in self._do("servers"):
            if server["role"] in ("leader", "standalone") and server["state"] == "running":
                return int(server["number"])
        return None

    def wait_for_leader(self, *, timeout_s: float = LEADER_S) -> int:
        """Return the number of the leader once there is one; raises TimeoutError."""
        ends = monotonic() + timeout_s
        while (leader := self.leader) is None:
            if monotonic() > ends:
                raise TimeoutError(
                    f"one of {self.hosts} should lead within {timeout_s:g} s, but none does; "
                    "let a majority of the servers run and reach one another"
                )
            sleep(POLL_S)
        return leader

    def pause(self, server: ServerName | None = None) -> Fault:
        """Let a server stand still, or all of them, as in a long garbage collection."""
        return self._inject("pause", server=server)

    def resume(self, server: ServerName | None = None) -> Fault:
        """Let a server that stands still go on, or all of them."""
        return self._inject("resume", server=server)

    def lag(self, server: ServerName = "follower", *, by_s: float) -> Fault:
        """Let a follower apply later what is committed: its clients read old data."""
        return self._inject("lag", server=server, by_s=by_s)

    def kill(self, server: ServerName) -> Fault:
        """Kill a server; the end of the fault starts it again."""
        return self._inject("kill", server=server)

    def start(self, server: ServerName | None = None) -> Fault:
        """Start a server that is down, or all of them."""
        return self._inject("start", server=server)

    def quorum_loss(self) -> Fault:
        """Kill servers, the leader among them, until the others are no majority."""
        return self._inject("quorum_loss")

    def cut(self, *servers: ServerName) -> Fault:
        """Cut these servers off from all others; clients reach all of them."""
        return self._inject("cut", servers=list(servers))

    def heal(self) -> Fault:
        """End every cut."""
        return self._inject("heal")

    # --- the end -----------------------------------------------------------------------

    def end(self) -> None:
        """Stop the clients and end the faults of this handle, so that the servers serve."""
        self._end_faults()
        if self._clients is not None:
            self._clients.stop()

    def _end_faults(self) -> None:
        while self._faults:
            self._faults.pop().end()
        for verb in ("heal", "resume", "start"):
            self._do(verb)
        self.wait_for_leader()

    # --- what passes to the servers ----------------------------------------------------

    def _inject(self, verb: str, **arguments: Any) -> Fault:
        given = {name: value for name, value in arguments.items() if value is not None}
        fault = Fault(self.servers.do, verb, self._do(verb, **given))
        self._faults.append(fault)
        return fault

    def _path(self, path: str | None) -> str | None:
        if path is None or not self.chroot:
            return path
        return self.chroot if path == "/" else self.chroot + path

    def _number(self, server: ServerName) -> int:
        if isinstance(server, int):
            return server
        wanted = {"leader": ("leader", "standalone"), "follower": ("follower",)}.get(server, ())
        for known in self._do("servers"):
            if known["role"] in wanted:
                return int(known["number"])
        raise ControlError(f"no server is a {server} now; name a number, 'leader' or 'follower'")


def _number_of(session: Session | None) -> int | None:
    if session is None or isinstance(session, int):
        return session
    if session.client_id is None:
        raise ControlError("the client has no session; start it before a fault is aimed at it")
    return session.client_id[0]
