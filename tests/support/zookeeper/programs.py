"""Simulated runs of small programs, told as scripts: one coroutine a client.

    async def writer(zk):
        await new_session()
        await zk.create("/a")
        await say("created")

    run = play(writer, reader, servers=3, seed=7, timeline=[...])

Each script is one turn of a program; clients are called `clients/0`, `clients/1` and so
on, in the order of the scripts. What a script says stands in the trace with its moment. A
script that does not look after the end of its session is over with it; any other error of
ZooKeeper that it does not look after makes the test fail.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from model.answers import Note
from model.asks import Tell, connected, next_note, tell
from model.errors import ConnectionLoss, SessionExpired, ZooKeeperError
from model.operations import Operation, ZooKeeper
from model.program import Ended, Program
from model.trace import Event, Header, Trace
from model.zookeeper.tree import Tree
from scenarios import from_text
from sim.world import World

Script = Callable[[ZooKeeper], Awaitable[None]]
Entry = Mapping[str, Any]

MS = 1_000
S = 1_000_000
LATENESS_US = 30 * MS
"""By how much a session may end later than the tick in which it was due."""
TRAVEL_US = 25 * MS
"""No message or commit takes longer when nothing is wrong."""

SERVERS = [f"zookeeper/{number}" for number in (1, 2, 3)]


class ScriptFailed(AssertionError):
    """A script met an error that it did not expect."""


def say(what: str, **detail: Any) -> Tell:
    """Say something into the trace."""
    return tell("says", what=what, **detail)


async def notes(timeout_ms: int = 0) -> list[Note]:
    """Take what is in the inbox, waiting so long for each next note."""
    taken: list[Note] = []
    while (note := await next_note(timeout_ms)) is not None:
        taken.append(note)
    return taken


async def insist(ask: Operation[Any]) -> Any:
    """Ask until there is an answer, waiting for a connection in between."""
    while True:
        try:
            return await ask
        except ConnectionLoss:
            await connected()


async def outcome_of(ask: Operation[Any]) -> str:
    """Ask once: `done`, or what went wrong in a word."""
    try:
        await ask
    except ConnectionLoss as error:
        return "may have happened" if error.may_have_happened else "not sent"
    except SessionExpired:
        return "expired"
    return "done"


class Run:
    """What a run has left: its trace, and the world as it was at the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.trace = Trace(Header("", "", "sim", 0), world.kernel.rows)

    def events(self, *kinds: str, node: str = "", **detail: Any) -> list[Event]:
        """The events of these kinds, of one node, whose detail holds all this."""
        return [
            event
            for event in self.trace.of_kind(*kinds)
            if node in ("", event.node) and detail.items() <= dict(event.detail).items()
        ]

    def said(self, client: int, what: str = "") -> Iterator[Event]:
        """What a client's script has said."""
        for event in self.events("says", node=f"clients/{client}"):
            if what in ("", event.detail["what"]):
                yield event

    def only(self, client: int, what: str) -> Event:
        """The one time that a script has said this."""
        (event,) = self.said(client, what)
        return event

    @property
    def ensemble(self) -> Any:
        """The ensemble."""
        return self.world.clusters["main"].ensemble

    @property
    def tree(self) -> Tree:
        """The newest tree."""
        tree: Tree = self.ensemble.committed
        return tree

    def session_of(self, client: int) -> int:
        """The session that a client had last."""
        node = self.world.nodes[f"clients/{client}"]
        assert node.client is not None
        return node.client.session

    def server_of(self, client: int) -> str:
        """The server that a client was connected to first."""
        return str(self.events("connected", node=f"clients/{client}")[0].detail["at"])

    @property
    def first_leader(self) -> str:
        """The server that led when the run began."""
        return self.events("leads")[0].node

    def why_not_real(self) -> list[str]:
        """The entries of the timeline that had no effect."""
        return [
            effect.action.label
            for effect in self.world.nemesis.effects
            if effect.at_us is None or not effect.is_real
        ]


def play(*scripts: Script, **how: Any) -> Run:
    """Run the scripts, each as a client of its own, against a simulated ensemble."""
    world = staged(*scripts, **how)
    world.run()
    return Run(world)


def staged(
    *scripts: Script,
    seed: int = 0,
    servers: int = 3,
    tick: str = "500ms",
    timeout_ms: int = 2000,
    timeline: list[Entry] | tuple[Entry, ...] = (),
    resends_watches: bool = False,
    settle: str = "5s",
) -> World:
    """The world in which `play` runs the scripts, before anything has happened."""

    async def turn(zk: ZooKeeper, me: Any, memory: Any) -> Any:
        script = scripts[int(me.node.rpartition("/")[2])]
        try:
            await script(zk)
        except SessionExpired:
            return Ended("its session is dead")
        except ZooKeeperError as error:
            raise ScriptFailed(f"{me.node}: {error}") from error
        return Ended("the script is over")

    scenario = {
        "name": "play",
        "about": "a play",
        "variant": "documented" if resends_watches else "hardened",
        "clusters": {
            "main": {
                "zookeeper": {"servers": servers, "tick": tick},
                "brokers": [{"id": 0, "starts": "never"}],
                "layout": "0.7",
                "topics": {"none": {"partitions_per_broker": 1}},
            }
        },
        "groups": {
            "clients": {
                "consumers": len(scripts),
                "streams": {"none": 1},
                "starts": "0s",
                "apart": "0s",
                "config": {"zookeeper.session.timeout.ms": timeout_ms},
            }
        },
        "timeline": list(timeline),
        "settle": settle,
    }
    plan = from_text("play.yaml", json.dumps(scenario)).plan(program=Program(turn, None, None))
    return World(plan, seed)
