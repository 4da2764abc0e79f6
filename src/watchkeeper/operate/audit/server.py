"""Serves the last audit over HTTP: `/metrics` for Prometheus, and `/health`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from ipaddress import ip_address
from threading import Lock, Thread
from time import monotonic, time

from watchkeeper.console.exit import USAGE, Stop, reason_of
from watchkeeper.console.http import QuietHandler
from watchkeeper.operate.audit.audit import Audited
from watchkeeper.operate.audit.metrics import CONTENT_TYPE, Reading, metrics_text

HOST = "127.0.0.1"
LAST_PORT = 65_535
PATIENCE = 3
"""After so many intervals without an audit the server is not healthy any more."""


class LastAudit:
    """The last audit, and whether the registry could be read since."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._lock = Lock()
        self._reading: Reading | None = None
        self._problem = "no audit has ended yet"
        self._at_s = monotonic()

    def keep(self, done: Audited) -> None:
        """Keep an audit that has ended."""
        with self._lock:
            self._reading, self._problem = Reading(done, time()), ""
            self._at_s = monotonic()

    def fail(self, problem: str) -> None:
        """Keep why the registry could not be read."""
        with self._lock:
            self._problem = problem

    @property
    def problem(self) -> str:
        """Why what is served is not up to date; empty where it is."""
        with self._lock:
            if self._problem:
                return self._problem
            age_s = monotonic() - self._at_s
            is_late = age_s > PATIENCE * self._every_s
            return f"the last audit ended {age_s:.0f} s ago" if is_late else ""

    @property
    def metrics(self) -> str:
        """The numbers of the last audit."""
        is_up = not self.problem
        with self._lock:
            return metrics_text(self._reading, is_up=is_up)


@contextmanager
def serving(address: str, last: LastAudit, *, allows_remote: bool) -> Iterator[str]:
    """Serve the last audit in a thread; yield the URL. Stop where the address cannot be used."""
    host, port = _host_and_port(address)
    _check_loopback(host, allows_remote=allows_remote)

    class Handler(_Handler):
        audit = last

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise Stop(
            USAGE, f"--listen {address}: nothing can listen there: {reason_of(error)}"
        ) from None
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > LAST_PORT or (colon and not host):
        raise Stop(USAGE, f"--listen {address}: expected PORT or HOST:PORT, as in 9108")
    return host or HOST, int(port)


def _check_loopback(host: str, *, allows_remote: bool) -> None:
    try:
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and not allows_remote:
        raise Stop(
            USAGE,
            f"--listen {host}: other machines could read the names of groups and topics there; "
            "add --allow-remote if that is meant, or give the port alone",
        )


class _Handler(QuietHandler):
    audit: LastAudit

    def do_GET(self) -> None:
        """Answer with metrics, with health, or with where these are."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self.answer(200, CONTENT_TYPE, self.audit.metrics.encode())
        elif path == "/health":
            problem = self.audit.problem
            self.answer(503 if problem else 200, "text/plain", f"{problem or 'ok'}\n".encode())
        else:
            self.answer(404, "text/plain", b"there are /metrics and /health\n")
