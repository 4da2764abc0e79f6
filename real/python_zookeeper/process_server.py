"""One server of a ZooKeeper in Python, with the methods that one of Apache's has."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.server import ANSWER_S, TIMEOUT_S, Role, State, ask_word

if TYPE_CHECKING:
    from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble

POLL_S = 0.02


class ProcessServer:
    """A server: its name, its address, and what can be done to it.

    It is no process of its own: a killed server closes its connections and takes no new ones,
    and one that is paused keeps what it receives. Its port stays open in both cases.
    """

    def __init__(self, ensemble: ProcessEnsemble, number: int, name: str, address: str) -> None:
        self._ensemble = ensemble
        self.number = number
        self.name = name
        self.address = address

    def __repr__(self) -> str:
        return f"<{self.name} at {self.address}, {self.state}>"

    @property
    def _known(self) -> dict[str, Any]:
        return self._ensemble.known_servers()[self.number - 1]

    @property
    def state(self) -> State:
        """Whether the server runs, is paused, or is down."""
        return cast(State, self._known["state"])

    @property
    def role(self) -> Role | None:
        """The role in the ensemble; None while the server does not serve."""
        known = self._known
        return cast("Role | None", known["role"]) if known["state"] == "running" else None

    @property
    def pid(self) -> int | None:
        """The id of the process that has all servers; None while this one is down."""
        return None if self.state == "down" else self._ensemble.pid

    @property
    def log_folder(self) -> Path:
        """The folder of the transaction log, which all servers share."""
        return self._ensemble.log_folder

    def four_letter_word(self, word: str, timeout_s: float = ANSWER_S) -> str:
        """The answer to a four-letter word; empty if there is none within `timeout_s`."""
        host, _, port = self.address.rpartition(":")
        return ask_word(host, int(port), word, timeout_s)

    # --- actions -------------------------------------------------------------------------

    def start(self, *, timeout_s: float | None = TIMEOUT_S) -> None:
        """Start the server and wait until it serves; with None, do not wait."""
        self._ensemble.do("start", {"server": self.number})
        if timeout_s is not None:
            self.wait_until_it_serves(timeout_s)

    def wait_until_it_serves(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the server answers requests; raises EnvironmentProblem after `timeout_s`."""
        ends = monotonic() + timeout_s
        while self.role is None:
            if monotonic() > ends:
                raise EnvironmentProblem(
                    f"{self.name} should serve at {self.address} within {timeout_s:g} s, but it "
                    f"is {self.state} and has no leader; start enough servers for a majority"
                )
            sleep(POLL_S)

    def kill(self) -> bool:
        """Kill the server; return whether it existed."""
        return self._strike("kill")

    def stop(self) -> bool:
        """End the server; return whether it existed."""
        return self._strike("kill")

    def pause(self) -> bool:
        """Let the server stand still, as in a long garbage collection; return whether it ran."""
        return self._strike("pause")

    def resume(self) -> bool:
        """Let the server go on; return whether it was paused."""
        return self._strike("resume")

    def restart(self, *, timeout_s: float | None = TIMEOUT_S) -> None:
        """End the server and start it again with its data."""
        self.stop()
        self.start(timeout_s=timeout_s)

    def _strike(self, verb: str) -> bool:
        if not self._ensemble.is_running:
            return False
        return any(self._ensemble.struck(verb, {"server": self.number}).values())
