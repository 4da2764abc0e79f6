"""A TLS front for a server that speaks plain TCP."""

from __future__ import annotations

import asyncio
import ssl

from tests import HOME
from tests.support.live.front import Front

CERTIFICATE = HOME / "tests" / "certificates" / "localhost.pem"
"""A certificate for 127.0.0.1 with its key, made for these tests, valid for a hundred years."""


class TlsFront(Front):
    """A TLS front; use it with `with`."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.connections = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATE)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Count a connection and serve it."""
        self.connections += 1
        await super().serve(reader, writer)
