"""Simulated runs of small programs that are written as scripts: one coroutine for each client.

    async def writer(zk):
        await new_session()
        await zk.create("/a")
        await say("created")

    run = play(writer, reader, servers=3, seed=7, timeline=[...])

Each script is one turn of a program; clients are called `clients/0`, `clients/1` and so on,
in the order of the scripts. What a script emits with `say` is in the trace with its time. A
script that does not handle the end of its session ends with it; any other unhandled error of
ZooKeeper fails the test.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from watchkeeper.model.actor.effects import Emit, connected, emit, next_event
from watchkeeper.model.actor.errors import ConnectionLoss, SessionExpired, ZooKeeperError
from watchkeeper.model.actor.events import Notification
from watchkeeper.model.actor.operations import Operation, ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Header, Trace
from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import World

Script = Callable[[ZooKeeper], Awaitable[None]]
Entry = Mapping[str, Any]

MS = 1_000
S = 1_000_000
LATENESS_US = 30 * MS
"""The longest time by which a session may end after the tick in which it was due."""
TRAVEL_US = 25 * MS
"""No message or commit takes longer without a fault."""

SERVERS = [f"zookeeper/{number}" for number in (1, 2, 3)]


class ScriptFailed(AssertionError):
    """A script met an error that it did not expect."""


def say(what: str, **detail: Any) -> Emit:
    """Write a message into the trace."""
    return emit("says", what=what, **detail)


async def notifications(timeout_ms: int = 0) -> list[Notification]:
    """Take what is in the inbox, waiting up to `timeout_ms` for each next notification."""
    taken: list[Notification] = []
    while (notification := await next_event(timeout_ms)) is not None:
        taken.append(notification)
    return taken


async def insist(ask: Operation[Any]) -> Any:
    """Repeat a request until there is an answer, waiting for a connection in between."""
    while True:
        try:
            return await ask
        except ConnectionLoss:
            await connected()


async def outcome_of(ask: Operation[Any]) -> str:
    """Send a request once: `done`, or the name of its error."""
    try:
        await ask
    except ConnectionLoss as error:
        return "may have happened" if error.may_have_happened else "not sent"
    except SessionExpired:
        return "expired"
    return "done"


class Run:
    """The result of a run: its trace, and the world at its end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.trace = Trace(Header("", "", "sim", 0), world.kernel.rows)

    def events(self, *kinds: str, node: str = "", **detail: Any) -> list[Event]:
        """The events of these kinds, of one node, whose detail contains all of this."""
        return [
            event
            for event in self.trace.of_kind(*kinds)
            if node in ("", event.node) and detail.items() <= dict(event.detail).items()
        ]

    def reported(self, client: int, what: str = "") -> Iterator[Event]:
        """The messages of a client's script."""
        for event in self.events("says", node=f"clients/{client}"):
            if what in ("", event.detail["what"]):
                yield event

    def only(self, client: int, what: str) -> Event:
        """The only message of this text."""
        (event,) = self.reported(client, what)
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
        """The last session of a client."""
        node = self.world.nodes[f"clients/{client}"]
        assert node.client is not None
        return node.client.session

    def server_of(self, client: int) -> str:
        """The first server of a client."""
        return str(self.events(EventKind.CONNECTED, node=f"clients/{client}")[0].detail["at"])

    @property
    def first_leader(self) -> str:
        """The leader at the begin of the run."""
        return self.events(EventKind.LEADER_ELECTED)[0].node

    def why_not_real(self) -> list[str]:
        """The entries of the timeline that had no effect."""
        return [
            effect.action.label
            for effect in self.world.nemesis.effects
            if effect.at_us is None or not effect.is_real
        ]


def play(*scripts: Script, **how: Any) -> Run:
    """Run the scripts, each as a client, against a simulated ensemble."""
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
    """The world in which `play` runs the scripts, before its start."""

    async def turn(zk: ZooKeeper, me: Any, state: Any) -> Any:
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
