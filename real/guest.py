"""What the proxy knows of one client: its way to each server, and what is aimed at it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Server
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ssl import SSLContext
from typing import TYPE_CHECKING, Literal

from real.flow import Direction, Tell, Valve
from real.tap import Tap
from real.wire import Session

if TYPE_CHECKING:
    from real.link import Link


@dataclass(frozen=True, slots=True, eq=False)
class Loss:
    """The next request is to be lost, or only its reply."""

    what: Literal["request", "reply"]
    tell: Tell
    lands_after_s: float | None = None
    """When a lost request reaches the server after all; None if it never does."""


class Way:
    """A client's way to one server: where the proxy listens, and what stands in between."""

    def __init__(self, guest: Guest, server: str, port: int) -> None:
        self.guest = guest
        self.server = server
        """The address of the server."""
        self.port = port
        self.listener: Server | None = None
        self.valves: dict[Direction, Valve] = {"to": Valve(), "from": Valve()}
        self.links: list[Link] = []

    @property
    def is_cut(self) -> bool:
        """Whether no connection can be made, since one needs both directions."""
        return any(valve.is_shut for valve in self.valves.values())

    def move_on(self) -> None:
        """Let pass what waited, as far as nothing stands in its way any longer."""
        for link in list(self.links):
            link.move_on()


class Guest:
    """A client of the proxy."""

    def __init__(
        self,
        name: str,
        loop: AbstractEventLoop,
        *,
        tls: SSLContext | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.name = name
        self.loop = loop
        self.tls = tls
        """What a connection to a server needs, where it goes by TLS."""
        self.tap = tap
        self.ways: list[Way] = []
        self.losses: list[Loss] = []
        """What the next requests will meet, one each."""
        self.refusals: list[tuple[float, Tell]] = []
        """Until when no connection is let in, and who wants to know of those that try."""

    @property
    def links(self) -> Iterator[Link]:
        """Its connections, the oldest first on each way."""
        return (link for way in self.ways for link in way.links)

    def ways_to(self, servers: Iterable[str] | None) -> list[Way]:
        """Its ways to these servers, or to all."""
        wanted = None if servers is None else set(servers)
        return [way for way in self.ways if wanted is None or way.server in wanted]

    def refuses(self) -> bool:
        """Whether a connection that is being made is turned away; who wants to know is told."""
        now = self.loop.time()
        self.refusals = [one for one in self.refusals if one[0] > now]
        for _, tell in self.refusals:
            tell("connections refused", 1)
        return bool(self.refusals)

    def link_of(self, session: Session | None) -> Link | None:
        """The connection over which this session goes on, if there is one."""
        alive = [link for link in self.links if link.is_open and link.session is not None]
        same = [
            link
            for link in alive
            if session is None or (link.session and link.session.number == session.number)
        ]
        return max(same, key=lambda link: link.number, default=None)
