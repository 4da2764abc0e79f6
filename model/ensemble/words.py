"""The four-letter words: what a server counts and says about itself in plain text.

A client sends four letters in place of a connect request, and the server answers and closes.
The texts have the form of Apache ZooKeeper's, since scripts and clients parse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from watchkeeper.model.ensemble.clock import Clock
from watchkeeper.model.wire.opcodes import Opcode

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.server import Server

VERSION = "3.9.5-watchkeeper"
"""The version whose semantics and protocol the server has."""
BUILT = f"{VERSION}, built on 2026-01-01 00:00 UTC"
ALWAYS = ("ruok", "envi", "isro")
"""The words that a server without a leader answers."""
READ_ONLY = "READ-ONLY mode; serving only read-only clients\n"
NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"
UNKNOWN = "{word} is not executed because it is not in the whitelist.\n"


class Statistics:
    """Counters of one server since its start or the last reset."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.started_ms = clock.now_ms()
        self.received = 0
        self.sent = 0
        self.rejected = 0
        self.min_latency_ms = 0.0
        self.max_latency_ms = 0.0
        self.total_latency_ms = 0.0
        self.measured = 0

    @property
    def uptime_ms(self) -> int:
        """How long the server has been running."""
        return int(self._clock.now_ms() - self.started_ms)

    @property
    def mean_latency_ms(self) -> float:
        """The mean time from a request to its answer."""
        return self.total_latency_ms / self.measured if self.measured else 0.0

    def answered(self, received_ms: float) -> None:
        """Count the answer to a request that was received then."""
        latency_ms = self._clock.now_ms() - received_ms
        self.sent += 1
        self.total_latency_ms += latency_ms
        if latency_ms > self.max_latency_ms:
            self.max_latency_ms = latency_ms
        if latency_ms < self.min_latency_ms or not self.measured:
            self.min_latency_ms = latency_ms
        self.measured += 1


def answer(server: Server, word: bytes) -> str:
    """The text for a word."""
    name = word.decode("latin-1")
    say = _WORDS.get(name)
    if say is None:
        return UNKNOWN.format(word=name)
    if not server.has_sessions and name not in ALWAYS:
        return NOT_SERVING
    return say(server)


def _ruok(server: Server) -> str:
    return "imok"


def _srvr(server: Server) -> str:
    return _head(server) + _figures(server)


def _head(server: Server) -> str:
    return f"Zookeeper version: {BUILT}\n{READ_ONLY if server.is_read_only else ''}"


def _stat(server: Server) -> str:
    clients = "".join(f" {_brief(connection)}\n" for connection in server.connections.values())
    return f"{_head(server)}Clients:\n{clients}\n{_figures(server)}"


def _figures(server: Server) -> str:
    counts = server.statistics
    return (
        f"Latency min/avg/max: {counts.min_latency_ms:.0f}/{counts.mean_latency_ms:.4f}/"
        f"{counts.max_latency_ms:.0f}\n"
        f"Received: {counts.received}\n"
        f"Sent: {counts.sent}\n"
        f"Connections: {len(server.connections)}\n"
        f"Outstanding: {_outstanding(server)}\n"
        f"Zxid: {server.tree.zxid:#x}\n"
        f"Mode: {server.state.value}\n"
        f"Node count: {len(server.tree.nodes)}\n"
    )


def _outstanding(server: Server) -> int:
    return sum(connection.outstanding for connection in server.connections.values())


def _brief(connection: Connection) -> str:
    return (
        f"/{connection.host}:{connection.port}[1](queued={connection.outstanding},"
        f"recved={connection.received},sent={connection.sent})"
    )


def _cons(server: Server) -> str:
    return "".join(f" {_full(connection)}\n" for connection in server.connections.values()) + "\n"


def _full(connection: Connection) -> str:
    if not connection.session:
        return _brief(connection)
    return (
        f"{_brief(connection)[:-1]},sid={connection.session:#x},lop={_last_opcode(connection)},"
        f"to={connection.timeout_ms},lzxid={connection.last_zxid:#x})"
    )


def _last_opcode(connection: Connection) -> str:
    opcode = connection.last_opcode
    if opcode is None:
        return ""
    return opcode.name if isinstance(opcode, Opcode) else "UNKNOWN"


def _dump(server: Server) -> str:
    sessions = server.sessions
    ticks = sessions.by_tick()
    lines = [
        "SessionTracker dump:",
        f"Session Sets ({len(ticks)})/({len(sessions)}):",
        *(line for due_ms, all_ in ticks for line in _expiring(due_ms, all_)),
        "ephemeral nodes dump:",
        f"Sessions with Ephemerals ({len(list(_owners(server)))}):",
    ]
    for session, paths in _owners(server):
        lines += [f"{session:#x}:", *(f"\t{path}" for path in sorted(paths))]
    return "\n".join(lines) + "\n"


def _expiring(due_ms: int, sessions: list[int]) -> Iterator[str]:
    yield f"{len(sessions)} expire at {due_ms}:"
    yield from (f"\t{session:#x}" for session in sessions)


def _owners(server: Server) -> Iterator[tuple[int, tuple[str, ...]]]:
    for session, paths in sorted(server.tree.ephemerals.items()):
        if paths:
            yield session, tuple(paths)


def _wchs(server: Server) -> str:
    watches = server.watches
    by_path = _watchers_by_path(server)
    total = sum(len(sessions) for sessions in by_path.values())
    return (
        f"{len(watches.paths)} connections watching {len(by_path)} paths\nTotal watches:{total}\n"
    )


def _watchers_by_path(server: Server) -> dict[str, list[int]]:
    by_path: dict[str, list[int]] = {}
    for number, watched in sorted(server.watches.paths.items()):
        for path in sorted({path for _, path in watched}):
            by_path.setdefault(path, []).append(server.connections[number].session)
    return by_path


def _wchp(server: Server) -> str:
    lines = []
    for path, sessions in sorted(_watchers_by_path(server).items()):
        lines += [path, *(f"\t{session:#x}" for session in sessions)]
    return "\n".join(lines) + "\n" if lines else "\n"


def _mntr(server: Server) -> str:
    counts = server.statistics
    tree = server.tree
    rows = [
        ("zk_version", BUILT),
        ("zk_server_state", server.state.value),
        ("zk_avg_latency", f"{counts.mean_latency_ms:.4f}"),
        ("zk_max_latency", f"{counts.max_latency_ms:.0f}"),
        ("zk_min_latency", f"{counts.min_latency_ms:.0f}"),
        ("zk_packets_received", counts.received),
        ("zk_packets_sent", counts.sent),
        ("zk_num_alive_connections", len(server.connections)),
        ("zk_outstanding_requests", _outstanding(server)),
        ("zk_znode_count", len(tree.nodes)),
        ("zk_watch_count", sum(map(len, _watchers_by_path(server).values()))),
        ("zk_ephemerals_count", sum(len(paths) for paths in tree.ephemerals.values())),
        ("zk_global_sessions", len(tree.sessions)),
        ("zk_connection_rejected", counts.rejected),
        ("zk_uptime", counts.uptime_ms),
    ]
    if server is server.ensemble.leader and len(server.ensemble.servers) > 1:
        following = [other for other in server.ensemble.servers if other.is_connected]
        rows.append(("zk_synced_followers", len(following) - 1))
    return "".join(f"{name}\t{value}\n" for name, value in rows)


def _envi(server: Server) -> str:
    return f"Environment:\nzookeeper.version={BUILT}\nos.name=any\njava.version=none\n"


def _conf(server: Server) -> str:
    settings = server.ensemble.settings
    shortest, longest = settings.session_bounds_ms
    rows = [
        ("tickTime", settings.tick_ms),
        ("maxClientCnxns", settings.connections_per_address),
        ("minSessionTimeout", shortest),
        ("maxSessionTimeout", longest),
        ("serverId", server.number),
        ("jute.maxbuffer", settings.most_frame_bytes),
    ]
    return "".join(f"{name}={value}\n" for name, value in rows)


def _isro(server: Server) -> str:
    if server.is_read_only:
        return "ro"
    return "rw" if server.is_serving else "null"


_WORDS: dict[str, Callable[[Server], str]] = {
    "ruok": _ruok,
    "srvr": _srvr,
    "stat": _stat,
    "mntr": _mntr,
    "cons": _cons,
    "dump": _dump,
    "wchs": _wchs,
    "wchp": _wchp,
    "envi": _envi,
    "conf": _conf,
    "isro": _isro,
}
