"""The real thing as one more world that plays scripts: the client that live members use.

One server serves every script, and what a script has left is deleted before the next. No
script has a root of its own: the order of a session's ephemerals hangs on their whole paths.
A session that a script left without a farewell is waited for: its end takes a zxid, and the
next script would count it as its own.
"""

from __future__ import annotations

import atexit
from collections import deque
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any

from model.answers import Fired
from model.errors import Failure
from model.operations import Create, Delete, Exists, GetChildren, Operation, Pipelined
from real.client import Client, Reply, Said
from real.ensemble import Ensemble
from real.settings import Settings
from tests.live import skip_without_zookeeper
from tests.zookeeper_story import told
from tests.zookeeper_worlds import CLOSE, HOME, TOP, Sameness, Step, Told

PATIENCE_S = 20.0


class Player:
    """One client that asks and hears, step by step."""

    def __init__(self, hosts: str) -> None:
        self.heard: SimpleQueue[Said] = SimpleQueue()
        self.events: deque[str] = deque()
        self.client = Client(hosts, "", 6000, self.heard.put)
        self.client.start()
        while self.client.state != "connected":
            self._take()
        self.session = self.client.session
        self.zxid = 0

    def _take(self) -> Any:
        said = self.heard.get(timeout=PATIENCE_S).what
        if isinstance(said, Fired):
            self.events.append(told(said))
        return said

    def ask(self, ask: Operation[Any] | Pipelined) -> Any:
        """Ask, and wait for the answers."""
        batch = ask.operations if isinstance(ask, Pipelined) else (ask,)
        tickets = self.client.submit(batch, 1)
        if isinstance(tickets, Failure):  # the connection is gone, as after what no server knows
            return tickets
        replies: dict[int, Reply] = {}
        while len(replies) < len(tickets):
            said = self._take()
            if isinstance(said, Reply):
                replies[said.ticket] = said
                self.zxid = said.zxid
        answers = [replies[ticket].answer for ticket in tickets]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return tuple(answers) if isinstance(ask, Pipelined) else answers[0]

    def hear(self) -> tuple[str, ...]:
        """What it has heard since; whatever was sent to it is there before the next answer."""
        if self.client.state != "closed":
            self.ask(Exists("/"))
        heard = tuple(self.events)
        self.events.clear()
        return heard

    def close(self) -> None:
        """End the session, and take what was said before the farewell."""
        self.client.close()
        while not self.heard.empty():
            self._take()


class Real:
    """A real server."""

    name = "real server"
    is_told_at_close = False

    def __init__(self) -> None:
        self._ensemble: Ensemble | None = None

    def _hosts(self) -> str:
        if self._ensemble is None:
            skip_without_zookeeper()
            self._ensemble = Ensemble(settings=Settings(tick_ms=2000))
            self._ensemble.start()
            atexit.register(self._ensemble.stop)
        return self._ensemble.hosts

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Play a script with so many clients."""
        hosts = self._hosts()
        self._wait_for_no_session()
        operator = Player(hosts)
        players = [Player(hosts) for _ in range(clients)]
        try:
            return self._play(players, script)
        finally:
            for player in players:
                if player.client.state != "closed":
                    player.close()
            _delete(operator, HOME)
            operator.close()

    def _wait_for_no_session(self) -> None:
        assert self._ensemble is not None
        (server,) = self._ensemble.servers
        ends = monotonic() + PATIENCE_S
        while "zk_global_sessions\t0\n" not in server.ask("mntr"):
            assert monotonic() < ends, "a script has left a session that does not expire"
            sleep(0.1)

    def _play(self, players: list[Player], script: list[Step]) -> list[Told]:
        players[0].ask(Create(HOME))
        players[0].ask(Create(TOP))
        sessions = {player.session: one for one, player in enumerate(players)}
        sameness = Sameness(players[0].zxid, sessions)
        outcome = []
        for who, ask in script:
            answer = None
            if ask == CLOSE:
                players[who].close()
            else:
                answer = players[who].ask(ask)  # type: ignore[arg-type]
            heard = tuple(player.hear() for player in players)
            outcome.append(Told(sameness.plain(ask, answer), heard))
        return outcome


def _delete(player: Player, path: str) -> None:
    names = player.ask(GetChildren(path))
    if isinstance(names, Failure):  # a script may have deleted all of it
        return
    for name in names:
        _delete(player, f"{path}/{name}")
    player.ask(Delete(path))
