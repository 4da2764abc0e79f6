"""Faults at random, many seeds: whatever happens, the ensemble keeps its promises."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.seeds import SEEDS
from tests.support.zookeeper.programs import MS, SERVERS, Entry, Run, play, say
from watchkeeper.model.actor.effects import connected, new_session, next_event, now_ms, sleep
from watchkeeper.model.actor.errors import BadVersion, ConnectionLoss, NodeExists, SessionExpired
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.trace.kinds import EventKind

CLIENTS = 3
BEGIN_MS, END_MS = 1_000, 16_000
"""The time in which faults begin."""
SETTLE = "25s"


def timeline_of(seed: int) -> list[Entry]:
    """Some faults at random moments; no two of the same target overlap."""
    chance = Random(seed)
    entries: list[Entry] = []
    for target in [f"clients/{client}" for client in range(CLIENTS)]:
        at = chance.randrange(BEGIN_MS, END_MS // 2)
        while at < END_MS:
            lasts = chance.choice([50, 300, 1500, 5000])
            fault: dict[str, Any] = chance.choice(
                [
                    {"disconnect": target, "for": f"{lasts}ms"},
                    {"pause": target, "for": f"{lasts}ms"},
                    {"partition": target, "from": "zookeeper", "for": f"{lasts}ms"},
                    {"partition": target, "direction": "from", "for": f"{lasts}ms"},
                    {"partition": target, "direction": "to", "for": f"{lasts}ms"},
                    {"delay": target, "by": "30ms", "for": f"{lasts}ms"},
                    {"expire": target},
                ]
            )
            entries.append({**fault, "at": f"{at}ms"})
            at += lasts + chance.randrange(500, 8000)
    for target in SERVERS:
        at = chance.randrange(BEGIN_MS, END_MS)
        while at < END_MS:
            lasts = chance.choice([100, 800, 3000])
            what = chance.choice(["crash", "pause", "lag", "partition"])
            if what == "crash":
                entries.append({"crash": target, "at": f"{at}ms"})
                entries.append({"restart": target, "at": f"{at + lasts}ms"})
            else:
                more = {"by": "400ms"} if what == "lag" else {}
                more |= {"from": "zookeeper"} if what == "partition" else {}
                entries.append({what: target, "at": f"{at}ms", "for": f"{lasts}ms", **more})
            at += lasts + chance.randrange(2000, 8000)
    return entries


async def hardy(zk: ZooKeeper) -> None:
    """Hold an ephemeral, count with others, write numbers; go on whatever happens."""
    number = 0
    me = f"{await now_ms()}"
    while True:
        try:
            await new_session()
            await next_event(0)
            mine = await zk.create("/e-", ephemeral=True, sequential=True)
            await say("registered", path=mine)
            newest = -1
            while True:
                number += 1
                path = f"/w-{me}-{number:05d}-"
                try:
                    await say("wrote", path=await zk.create(path, sequential=True))
                    seen = await zk.exists("/counter")
                    if seen is None:
                        await zk.create("/counter", b"0")
                    counter = await zk.get("/counter")
                    await say("read", version=counter.version, backwards=counter.version < newest)
                    newest = counter.version
                    count = str(int(counter.data) + 1).encode()
                    await say("counts")
                    await zk.set("/counter", count, version=counter.version)
                    await say("counted")
                except ConnectionLoss as error:
                    await say("lost", sent=error.sent)
                    await connected()
                except (BadVersion, NodeExists):
                    await say("lost the race")
                await sleep(40)
        except SessionExpired:
            await say("expired")
        except ConnectionLoss:
            await say("lost before it was registered")


def run_with(seed: int, *, resends_watches: bool = False) -> Run:
    """One run of hardy clients."""
    return play(
        *[hardy] * CLIENTS,
        seed=seed,
        timeout_ms=3000,
        timeline=timeline_of(seed),
        settle=SETTLE,
        resends_watches=resends_watches,
    )


@pytest.mark.parametrize("seed", range(max(SEEDS // 2, 1)))
def test_promises_are_kept_under_any_faults(seed: int) -> None:
    """Nothing acknowledged is lost, counting loses nothing, ephemerals live as sessions do."""
    run = run_with(seed)

    written = [
        event.detail["path"]
        for client in range(CLIENTS)
        for event in run.reported(client, "wrote")
    ]
    assert len(written) > 200
    assert set(written) <= set(run.tree.nodes), "an acknowledged write has vanished"

    counted = sum(1 for client in range(CLIENTS) for _ in run.reported(client, "counted"))
    lost = sum(
        event.detail["sent"]
        for client in range(CLIENTS)
        for event in run.reported(client, "lost")
    )
    total = int(run.tree.nodes["/counter"].data or b"0")
    assert counted <= total <= counted + lost + len(run.events(EventKind.SESSION_EXPIRED))

    owners = {node.owner for path, node in run.tree.nodes.items() if path.startswith("/e-")}
    assert (
        owners == set(run.tree.sessions) == {run.session_of(number) for number in range(CLIENTS)}
    )

    reads = [event for client in range(CLIENTS) for event in run.reported(client, "read")]
    assert not any(event.detail["backwards"] for event in reads)

    for client in range(CLIENTS):
        assert list(run.reported(client))[-1].t_us > run.trace.end_us - 500 * MS, "it goes on"
