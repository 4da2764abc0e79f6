"""A TLS front for a server that speaks plain TCP."""

from __future__ import annotations

import asyncio
import ssl
import threading

from tests import HOME
from tests.support.patience import PATIENCE_S

CERTIFICATE = HOME / "tests" / "certificates" / "localhost.pem"
"""A certificate for 127.0.0.1 with its key, made for these tests, valid for a hundred years."""


class TlsFront:
    """A TLS front; use it with `with`."""

    def __init__(self, server: str) -> None:
        self.host, _, port = server.rpartition(":")
        self.port = int(port)
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> TlsFront:
        self._thread.start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        made = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        server = asyncio.run_coroutine_threadsafe(made, self._loop).result(PATIENCE_S)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        from_server, to_server = await asyncio.open_connection(self.host, self.port)
        await asyncio.gather(_pass(reader, to_server), _pass(from_server, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()
