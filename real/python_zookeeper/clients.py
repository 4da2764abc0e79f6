"""Kazoo clients that end together."""

from __future__ import annotations

from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.real.errors import EnvironmentProblem

CONNECT_S = 15.0


class Clients:
    """The clients that a test has started."""

    def __init__(self) -> None:
        self._started: list[KazooClient] = []

    def start(self, hosts: str, **options: Any) -> KazooClient:
        """Return a client that is connected; the options are those of KazooClient.

        Raises EnvironmentProblem if no server grants it a session.
        """
        client = KazooClient(hosts, **options)
        self._started.append(client)
        try:
            client.start(timeout=CONNECT_S)
        except KazooTimeoutError:
            raise EnvironmentProblem(
                f"a client should get a session at {hosts} within {CONNECT_S:g} s, but it got "
                "none; end the faults that keep it away, or start it before them"
            ) from None
        return client

    def stop(self) -> None:
        """Stop every client that still runs."""
        while self._started:
            client = self._started.pop()
            client.stop()
            client.close()
