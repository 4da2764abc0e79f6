"""A ZooKeeper that a test starts."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from watchkeeper.model.ensemble.history import History
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble
from watchkeeper.real.python_zookeeper.thread_ensemble import ThreadEnsemble
from watchkeeper.testing.handle import Handle


class ZooKeeper(Handle):
    """One server, or an ensemble of an odd number, on the loopback.

        with ZooKeeper(servers=3, tick_s=0.2) as zookeeper:
            client = zookeeper.client()
            zookeeper.kill("leader")

    It serves from the begin of the block to its end; clients that it has started are stopped
    with it.
    """

    def __init__(
        self,
        servers: int = 1,
        *,
        tick_s: float = 0.5,
        min_session_s: float | None = None,
        max_session_s: float | None = None,
        read_only_mode: bool = False,
        own_process: bool = False,
        data: Path | str | None = None,
        name: str = "zookeeper",
    ) -> None:
        """Prepare the servers; the timeouts of sessions are 2 to 20 ticks unless stated.

        It runs in a thread of this process or, with `own_process`, beside a program that holds
        the interpreter for long. With `data` every write is durable in that folder, in the
        files of Apache's server. In read-only mode a server without a leader serves reads to
        clients that accept that. `name` is in the header of the history.
        """
        settings = EnsembleSettings(
            tick_ms=_in_ms(tick_s),
            min_session_ms=None if min_session_s is None else _in_ms(min_session_s),
            max_session_ms=None if max_session_s is None else _in_ms(max_session_s),
            read_only_mode=read_only_mode,
            connections_per_address=0,
        )
        folder = None if data is None else Path(data)
        self._ensemble: ProcessEnsemble | ThreadEnsemble
        if own_process:
            self._ensemble = ProcessEnsemble(
                servers, settings=settings, data=folder, has_history=True
            )
        else:
            self._ensemble = ThreadEnsemble(
                servers, settings=settings, data=folder, recorder=History()
            )
        super().__init__(self._ensemble, name=name)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Begin to serve, where no `with` block does it.

        Raises EnvironmentProblem for a data folder that cannot be used.
        """
        self._ensemble.start()

    def close(self) -> None:
        """Stop the clients and the servers."""
        try:
            self.end()
        finally:
            self._ensemble.stop()


def _in_ms(seconds: float) -> int:
    return round(seconds * 1000)
