"""A TCP connection between a client and a server, and what is sent over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.sim.zookeeper.network import Wire

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.client import Client
    from watchkeeper.sim.zookeeper.server import Server

PING = "ping"
CLOSE = "close"


class Request:
    """Something a client has sent: an operation, a batch, a ping or its farewell."""

    __slots__ = ("ask", "client_done")

    def __init__(
        self, effect: Any, client_done: Callable[[Any, int], object] | None = None
    ) -> None:
        self.ask = effect
        self.client_done = client_done
        """Called with the answer and a zxid when the reply has arrived."""


class Connection:
    """A TCP connection between a client and a server, with one wire each way."""

    __slots__ = (
        "behind",
        "client",
        "down",
        "has_late_requests",
        "is_open_at_server",
        "loses_requests",
        "number",
        "reply_to_lose",
        "server",
        "session",
        "unanswered",
        "up",
    )

    def __init__(self, number: int, client: Client, server: Server) -> None:
        network = server.kernel_network
        self.number = number
        self.client = client
        self.server = server
        self.session = 0
        self.up = Wire(network, client.node.name, server.name)
        self.down = Wire(network, server.name, client.node.name)
        self.is_open_at_server = False
        self.has_late_requests = False
        """Whether its requests under way passed all checks before the session moved on."""
        self.reply_to_lose: tuple[Request, FaultEffect] | None = None
        self.loses_requests = False
        """Whether requests under way when it broke are lost; otherwise they still arrive."""
        self.unanswered: Request | None = None
        """What the server is at work on. Answers go out in order."""
        self.behind: list[Request] = []
        """What came while it was: pings, and requests of other threads of the client."""
