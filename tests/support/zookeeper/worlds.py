"""The worlds that must all give the same answers, behind one interface.

A *script* is a list of steps, `(client, operation)` or `(client, CLOSE)`, one after the other:
the next step begins when every client has received its events of the last one. An *arm* plays a
script in one world and returns, for each step, the answer and the events of each client. Answers
are made comparable: errors become words, zxids count from the begin of the script, sessions
become clients, and times are dropped.

To add a world, write one more arm and put it into `ARMS`.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec.structs import asdict

from tests.support.zookeeper.programs import play
from tests.support.zookeeper.script import error_of, text_of
from watchkeeper.model.actor.effects import close_session, new_session, next_event, now_ms, sleep
from watchkeeper.model.actor.errors import Failure, ZooKeeperError
from watchkeeper.model.actor.events import Fired, ZnodeView
from watchkeeper.model.actor.operations import (
    Create,
    Exists,
    GetEphemerals,
    MultiRead,
    Operation,
    Pipelined,
    ZooKeeper,
)
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.standalone import Server

CLOSE = "close"
HOME = "/above"
TOP = "/above/here"
"""Every path of a script is this znode or lies below it. An arm creates both first, so that
the counter of sequential names above it starts anew with each script.
"""


class Proof(NamedTuple):
    """A step in which a client shows the password of a name; no simulated client can."""

    name: str
    password: str

    @property
    def identity(self) -> str:
        """What a server makes of it."""
        digest = hashlib.sha1(f"{self.name}:{self.password}".encode()).digest()
        return f"{self.name}:{b64encode(digest).decode()}"


Step = tuple[int, Operation[Any] | Pipelined | Proof | str]
TIMES = ("ctime", "mtime")
ZXIDS = ("czxid", "mzxid", "pzxid")


class Told(NamedTuple):
    """The result of a step: its answer, and the events of each client, its own first."""

    answer: Any
    heard: tuple[tuple[str, ...], ...]


def as_heard_by(arm: Arm, script: list[Step], observations: list[Told]) -> list[Told]:
    """The results of the machine, without what the clients of an arm cannot receive."""
    if arm.is_notified_at_close:
        return observations
    return [
        Told(
            observed.answer,
            tuple(() if who == own else events for own, events in enumerate(observed.heard)),
        )
        if effect == CLOSE
        else observed
        for (who, effect), observed in zip(script, observations, strict=True)
    ]


class Arm(Protocol):
    """One world."""

    name: str
    is_notified_at_close: bool
    """Whether a client receives the events of its own close; kazoo's does not."""

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Play a script with this many clients."""
        ...


class Sameness:
    """Makes the answers of a world comparable."""

    def __init__(self, base_zxid: int, client_of: dict[int, int]) -> None:
        self.base_zxid = base_zxid
        self.client_of = client_of

    def plain(self, effect: Any, answer: Any) -> Any:
        """An answer without what differs between worlds."""
        if isinstance(answer, Failure):
            return error_of(answer)
        if isinstance(answer, ZnodeView):
            seen = answer.version, answer.mine, self._stat(asdict(answer.stat))
            # The answer to exists contains no data.
            return seen if isinstance(effect, Exists) else (answer.data, *seen)
        if isinstance(effect, Pipelined | MultiRead):
            return tuple(map(self.plain, effect.operations, answer))
        if isinstance(effect, GetEphemerals):
            return tuple(sorted(answer))
        return answer

    def _stat(self, stat: dict[str, int]) -> dict[str, Any]:
        owner = stat["ephemeral_owner"]
        return {
            **{name: value for name, value in stat.items() if name not in TIMES},
            **{name: stat[name] - self.base_zxid for name in ZXIDS},
            "ephemeral_owner": f"client {self.client_of[owner]}" if owner else "no client",
        }


# --- the pure machine ------------------------------------------------------------------


class Machine:
    """The sequential specification, applied step by step."""

    name = "machine"
    is_notified_at_close = True

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Apply every step to the result of the last one."""
        service = Server()
        for client in range(clients):
            service = standalone.open_session(service, client + 1)
            service = standalone.authenticate(service, client + 1, "ip", "127.0.0.1")
        for path in (HOME, TOP):
            service = standalone.apply(service, 1, Create(path)).server
        sameness = Sameness(service.tree.zxid, {number + 1: number for number in range(clients)})
        outcome = []
        for client, effect in script:
            service, answer, fired = self._step(service, client + 1, effect)
            heard = tuple(
                tuple(text_of(event) for who, event in fired if who == number + 1)
                for number in range(clients)
            )
            outcome.append(Told(sameness.plain(effect, answer), heard))
        return outcome

    def _step(
        self, service: Server, session: int, effect: Any
    ) -> tuple[Server, Any, list[tuple[int, Fired]]]:
        if effect == CLOSE:
            done = standalone.close_session(service, session)
            return done.server, None, list(done.fired)
        if isinstance(effect, Proof):
            return standalone.authenticate(service, session, "digest", effect.identity), None, []
        answers, fired = [], []
        for operation in effect.operations if isinstance(effect, Pipelined) else (effect,):
            done = standalone.apply(service, session, operation)
            service = done.server
            answers.append(done.answer)
            fired.extend(done.fired)
        return service, tuple(answers) if isinstance(effect, Pipelined) else answers[0], fired


# --- the simulated ensemble ------------------------------------------------------------

BEGIN_MS, SLOT_MS = 200, 60
"""When the first step begins, and how long each step has: longer than anything takes."""


class Simulation:
    """A simulated ensemble; each client is a process, and time keeps them in step."""

    is_notified_at_close = True

    def __init__(self, servers: int, seed: int = 0) -> None:
        self.name = f"simulation of {servers}"
        self.servers = servers
        self.seed = seed

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Run every client as a program that wakes up for its steps."""
        answers: list[Any] = [None] * len(script)
        heard: list[list[list[str]]] = [[[] for _ in range(clients)] for _ in script]
        late: list[str] = []
        base: list[int] = []
        scripts = [
            self._client(number, script, answers, heard, late, base) for number in range(clients)
        ]
        length_s = (BEGIN_MS + SLOT_MS * (len(script) + 2)) // 1000 + 1
        run = play(
            *scripts,
            servers=self.servers,
            seed=self.seed,
            timeout_ms=6000,
            settle=f"{length_s}s",
        )
        assert not late, f"heard after the answer to an own write: {late}"
        sessions = {run.session_of(number): number for number in range(clients)}
        sameness = Sameness(base[0], sessions)
        return [
            Told(sameness.plain(effect, answer), tuple(map(tuple, events)))
            for (_, effect), answer, events in zip(script, answers, heard, strict=True)
        ]

    def _client(
        self,
        own: int,
        script: list[Step],
        answers: list[Any],
        heard: list[list[list[str]]],
        late: list[str],
        base: list[int],
    ) -> Callable[[ZooKeeper], Any]:
        async def client(zk: ZooKeeper) -> None:
            began_ms = await now_ms()
            await new_session()
            if own == 0:
                await zk.create(HOME)
                await zk.create(TOP)
                base.append((await zk.get(TOP)).stat.czxid)
            for at, (who, effect) in enumerate(script):
                slot_ms = began_ms + BEGIN_MS + at * SLOT_MS
                await sleep(slot_ms - await now_ms())
                if who == own:
                    answers[at] = await _answer(effect)
                    heard[at][own] = await _events()
                    if effect == CLOSE:
                        return
                await sleep(slot_ms + SLOT_MS - 10 - await now_ms())
                events = await _events()
                if who == own:
                    late.extend(events)
                else:
                    heard[at][own] = events

        return client


async def _answer(effect: Any) -> Any:
    if effect == CLOSE:
        return await close_session()
    try:
        return await effect
    except ZooKeeperError as error:
        cause = getattr(error, "cause", None)
        return Failure(type(error), error.path, index=getattr(error, "index", -1), cause=cause)


async def _events() -> list[str]:
    events = []
    while (notification := await next_event(0)) is not None:
        if isinstance(notification, Fired):
            events.append(text_of(notification))
    return events


ARMS: list[Arm] = [Machine(), Simulation(servers=1), Simulation(servers=3)]
