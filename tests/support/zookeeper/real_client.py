"""A real server as one more world that plays scripts, with the client of live members.

One server serves every script, and everything a script has created is deleted before the next
one. Scripts have no root of their own, because the order of a session's ephemerals depends on
their full paths. Before the next script, all sessions have to have ended: the end of a session
takes a zxid, which the next script would count as its own.
"""

from __future__ import annotations

import atexit
from collections import deque
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, ClassVar

from tests.support.live_zookeeper import skip_without_zookeeper
from tests.support.patience import PATIENCE_S
from tests.support.zookeeper.script import text_of
from tests.support.zookeeper.worlds import CLOSE, HOME, TOP, Proof, Sameness, Step, Told
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import (
    Create,
    Delete,
    Exists,
    GetChildren,
    Operation,
    Pipelined,
)
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.zookeeper.settings import Settings
from watchkeeper.real.zookeepers.ensemble import Ensemble
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

OPERATOR = Proof("operator", "secret")
"""It deletes what a script has created: a list that does not permit it that must name it."""
A_DAY_MS = 86_400_000
SETTINGS = Settings(tick_ms=2000, has_ttls=True, container_check_ms=A_DAY_MS)
"""What the scripts do is all that happens: the server itself deletes no container."""


class Player:
    """One client that sends requests and receives events, step by step."""

    def __init__(self, hosts: str) -> None:
        self.heard: SimpleQueue[ClientEvent] = SimpleQueue()
        self.events: deque[str] = deque()
        self.client = Client(hosts, "", 6000, self.heard.put)
        self.client.start()
        while self.client.state != "connected":
            self._take()
        self.session = self.client.session
        self.zxid = 0

    def _take(self) -> Any:
        content = self.heard.get(timeout=PATIENCE_S).content
        if isinstance(content, Fired):
            self.events.append(text_of(content))
        return content

    def ask(self, effect: Operation[Any] | Pipelined) -> Any:
        """Send requests and wait for the answers."""
        batch = effect.operations if isinstance(effect, Pipelined) else (effect,)
        tickets = self.client.submit(batch, 1)
        if isinstance(tickets, Failure):  # the connection is gone, as after what no server knows
            return tickets
        replies: dict[int, Reply] = {}
        while len(replies) < len(tickets):
            content = self._take()
            if isinstance(content, Reply):
                replies[content.ticket] = content
                self.zxid = content.zxid
        answers = [replies[ticket].answer for ticket in tickets]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return tuple(answers) if isinstance(effect, Pipelined) else answers[0]

    def prove(self, proof: Proof) -> None:
        """Show the password of a name."""
        self.client._kazoo.add_auth("digest", f"{proof.name}:{proof.password}")

    def hear(self) -> tuple[str, ...]:
        """The events since the last call; all earlier events arrive before the next answer."""
        if self.client.state != "closed":
            self.ask(Exists("/"))
        heard = tuple(self.events)
        self.events.clear()
        return heard

    def close(self) -> None:
        """End the session, and receive what came before its end."""
        self.client.close()
        while not self.heard.empty():
            self._take()


class Real:
    """A real server: Apache's, or the one in Python."""

    is_notified_at_close = False

    _ensembles: ClassVar[dict[Implementation, Ensemble]] = {}
    """The servers that all of this process share."""

    def __init__(self, implementation: Implementation = Implementation.JAVA) -> None:
        self.implementation = implementation
        self.name = "real server" if implementation is Implementation.JAVA else "server in Python"

    def _hosts(self) -> str:
        if self.implementation not in self._ensembles:
            if self.implementation is Implementation.JAVA:
                skip_without_zookeeper()
            ensemble = ensemble_of(self.implementation, settings=SETTINGS)
            ensemble.start()
            atexit.register(ensemble.stop)
            self._ensembles[self.implementation] = ensemble
        return self._ensembles[self.implementation].hosts

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Play a script with this many clients."""
        hosts = self._hosts()
        self._wait_for_no_session()
        operator = Player(hosts)
        operator.prove(OPERATOR)
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
        (server,) = self._ensembles[self.implementation].servers
        ends = monotonic() + PATIENCE_S
        while "zk_global_sessions\t0\n" not in server.four_letter_word("mntr", PATIENCE_S):
            assert monotonic() < ends, "a script has left a session that does not expire"
            sleep(0.1)

    def _play(self, players: list[Player], script: list[Step]) -> list[Told]:
        players[0].ask(Create(HOME))
        players[0].ask(Create(TOP))
        sessions = {player.session: number for number, player in enumerate(players)}
        sameness = Sameness(players[0].zxid, sessions)
        outcome = []
        for who, effect in script:
            answer = None
            if effect == CLOSE:
                players[who].close()
            elif isinstance(effect, Proof):
                players[who].prove(effect)
            else:
                answer = players[who].ask(effect)  # type: ignore[arg-type]
            heard = tuple(player.hear() for player in players)
            outcome.append(Told(sameness.plain(effect, answer), heard))
        return outcome


def _delete(player: Player, path: str) -> None:
    names = player.ask(GetChildren(path))
    if isinstance(names, Failure):  # a script may have deleted all of it
        return
    for name in names:
        _delete(player, f"{path}/{name}")
    player.ask(Delete(path))
