"""The worlds that must all give the same answers, behind one door.

A *script* is a list of steps, `(client, operation)` or `(client, CLOSE)`, one after the
other: the next step begins when everybody has heard what there is to hear of the last.
An *arm* plays a script in one world and returns, for each step, the answer and what each
client has heard. Answers are made comparable: errors are words, zxids count from the
beginning of the script, sessions are clients, times are left out.

To add a world, write one more arm and put it into `ARMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec.structs import asdict

from model.answers import Fired, Seen
from model.asks import close_session, new_session, next_note, now_ms, sleep
from model.errors import Failure, ZooKeeperError
from model.operations import Create, Exists, GetEphemerals, Operation, Pipelined, ZooKeeper
from model.zookeeper import machine
from model.zookeeper.machine import Service
from tests.zookeeper_runs import play
from tests.zookeeper_story import error_of, told

CLOSE = "close"
HOME = "/above"
TOP = "/above/here"
"""Every path of a script is this znode or lies below it. An arm creates both first, so that
the counter of sequential names above it begins anew with each script."""

Step = tuple[int, Operation[Any] | Pipelined | str]
TIMES = ("ctime", "mtime")
ZXIDS = ("czxid", "mzxid", "pzxid")


class Told(NamedTuple):
    """What came of a step: its answer, and the events each client heard, its own first."""

    answer: Any
    heard: tuple[tuple[str, ...], ...]


def as_heard_by(arm: Arm, script: list[Step], told: list[Told]) -> list[Told]:
    """What a machine has told, without what the clients of an arm cannot hear."""
    if arm.is_told_at_close:
        return told
    return [
        Told(
            one.answer,
            tuple(() if who == own else events for own, events in enumerate(one.heard)),
        )
        if ask == CLOSE
        else one
        for (who, ask), one in zip(script, told, strict=True)
    ]


class Arm(Protocol):
    """One world."""

    name: str
    is_told_at_close: bool
    """Whether a client hears the events that its own farewell fires; kazoo's does not."""

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Play a script with so many clients."""
        ...


class Sameness:
    """Makes the answers of a world comparable."""

    def __init__(self, base_zxid: int, client_of: dict[int, int]) -> None:
        self.base_zxid = base_zxid
        self.client_of = client_of

    def plain(self, ask: Any, answer: Any) -> Any:
        """An answer without what differs between worlds."""
        if isinstance(answer, Failure):
            return error_of(answer)
        if isinstance(answer, Seen):
            seen = answer.version, answer.mine, self._stat(asdict(answer.stat))
            # A server that is asked whether a znode exists does not send its data.
            return seen if isinstance(ask, Exists) else (answer.data, *seen)
        if isinstance(ask, Pipelined):
            return tuple(map(self.plain, ask.operations, answer))
        if isinstance(ask, GetEphemerals):
            return tuple(sorted(answer))
        return answer

    def _stat(self, stat: dict[str, int]) -> dict[str, Any]:
        owner = stat["ephemeral_owner"]
        return {
            **{name: value for name, value in stat.items() if name not in TIMES},
            **{name: stat[name] - self.base_zxid for name in ZXIDS},
            "ephemeral_owner": f"client {self.client_of[owner]}" if owner else "nobody",
        }


# --- the pure machine ------------------------------------------------------------------


class Machine:
    """The sequential specification, applied step by step."""

    name = "machine"
    is_told_at_close = True

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Apply every step to the value that the last one left."""
        service = Service()
        for client in range(clients):
            service = machine.open_session(service, client + 1)
        for path in (HOME, TOP):
            service = machine.apply(service, 1, Create(path)).service
        sameness = Sameness(service.tree.zxid, {one + 1: one for one in range(clients)})
        outcome = []
        for client, ask in script:
            service, answer, fired = self._step(service, client + 1, ask)
            heard = tuple(
                tuple(told(event) for who, event in fired if who == one + 1)
                for one in range(clients)
            )
            outcome.append(Told(sameness.plain(ask, answer), heard))
        return outcome

    def _step(
        self, service: Service, session: int, ask: Any
    ) -> tuple[Service, Any, list[tuple[int, Fired]]]:
        if ask == CLOSE:
            done = machine.close_session(service, session)
            return done.service, None, list(done.fired)
        answers, fired = [], []
        for operation in ask.operations if isinstance(ask, Pipelined) else (ask,):
            done = machine.apply(service, session, operation)
            service = done.service
            answers.append(done.answer)
            fired.extend(done.fired)
        return service, tuple(answers) if isinstance(ask, Pipelined) else answers[0], fired


# --- the simulated ensemble ------------------------------------------------------------

BEGIN_MS, SLOT_MS = 200, 60
"""When the first step begins, and how long each has: longer than anything takes."""


class Simulation:
    """An ensemble of so many servers; each client is a process, and time keeps them in step."""

    is_told_at_close = True

    def __init__(self, servers: int, seed: int = 0) -> None:
        self.name = f"simulation of {servers}"
        self.servers = servers
        self.seed = seed

    def play(self, clients: int, script: list[Step]) -> list[Told]:
        """Run every client as a program that wakes for its steps."""
        answers: list[Any] = [None] * len(script)
        heard: list[list[list[str]]] = [[[] for _ in range(clients)] for _ in script]
        late: list[str] = []
        base: list[int] = []
        scripts = [
            self._client(one, script, answers, heard, late, base) for one in range(clients)
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
        sessions = {run.session_of(one): one for one in range(clients)}
        sameness = Sameness(base[0], sessions)
        return [
            Told(sameness.plain(ask, answer), tuple(map(tuple, events)))
            for (_, ask), answer, events in zip(script, answers, heard, strict=True)
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
            for at, (who, ask) in enumerate(script):
                slot_ms = began_ms + BEGIN_MS + at * SLOT_MS
                await sleep(slot_ms - await now_ms())
                if who == own:
                    answers[at] = await _answer(ask)
                    heard[at][own] = await _events()
                    if ask == CLOSE:
                        return
                await sleep(slot_ms + SLOT_MS - 10 - await now_ms())
                events = await _events()
                if who == own:
                    late.extend(events)
                else:
                    heard[at][own] = events

        return client


async def _answer(ask: Any) -> Any:
    if ask == CLOSE:
        return await close_session()
    try:
        return await ask
    except ZooKeeperError as error:
        cause = getattr(error, "cause", None)
        return Failure(type(error), error.path, index=getattr(error, "index", -1), cause=cause)


async def _events() -> list[str]:
    events = []
    while (note := await next_note(0)) is not None:
        if isinstance(note, Fired):
            events.append(told(note))
    return events


ARMS: list[Arm] = [Machine(), Simulation(servers=1), Simulation(servers=3)]
