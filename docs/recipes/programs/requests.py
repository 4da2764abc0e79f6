"""A client that starts and stops, retried requests and transactions."""

from __future__ import annotations

from contextlib import suppress

from docs.recipes.programs.clients import GIVEN_UP, NAMES, ROUNDS, client_of, living, persist
from kazoo.client import KazooClient

from watchkeeper.virtual.world.world import World


def start_stop(world: World) -> None:
    """A client starts, stops and starts again, and each of its writes is there once."""

    def user(world: World, name: str) -> None:
        client = KazooClient(hosts=world.hosts, timeout=4.0)
        for at in range(ROUNDS):
            with suppress(*GIVEN_UP):
                client.start(timeout=15)
                client.ensure_path(f"/{name}/{at}")
                if at == 1:
                    client.restart()
                    client.ensure_path(f"/{name}/again")
            client.stop()
        client.close()

    finished: list[str] = []

    def to_the_end(world: World, name: str) -> None:
        user(world, name)
        finished.append(name)

    for name in NAMES:
        world.process(name, to_the_end, world, name)
    world.eventually(
        lambda: {*finished} >= {*living(world)}, within_s=40, name="each client stops"
    )


def retries(world: World) -> None:
    """A retried create of a sequential znode makes one znode."""
    made: list[str] = []
    doubt: list[int] = []

    def user(world: World, name: str) -> None:
        with client_of(world) as client:
            for _ in range(ROUNDS):
                doubt.append(1)
                with suppress(*GIVEN_UP):
                    made.append(client.retry(client.create, "/job-", b"", sequence=True))
                    doubt.pop()

    def counted() -> None:
        jobs = [path for path in world.zookeeper.ensemble.head.nodes if path.startswith("/job-")]
        assert len(made) <= len(jobs) <= len(made) + len(doubt), (
            f"{len(made)} creates have returned and {len(doubt)} are in doubt, but there are "
            f"{len(jobs)} znodes"
        )

    for name in NAMES:
        world.process(name, user, world, name)
    world.finally_(counted)


def transactions(world: World) -> None:
    """A transaction that is tried again is done once."""
    made: list[str] = []
    doubt: list[int] = []

    def user(world: World, name: str) -> None:
        with client_of(world) as client:
            persist(world, lambda: client.ensure_path("/a"))
            for _ in range(ROUNDS):
                doubt.append(1)
                with suppress(*GIVEN_UP):
                    transaction = client.transaction()
                    transaction.create("/a/one-", sequence=True)
                    transaction.create("/a/two-", sequence=True)
                    results = client.retry(transaction.commit)
                    assert len(results) == 2, f"a transaction of two has {len(results)} results"
                    made.append(results[0])
                    doubt.pop()

    def counted() -> None:
        nodes = world.zookeeper.ensemble.head.nodes
        one = sum(path.startswith("/a/one-") for path in nodes)
        two = sum(path.startswith("/a/two-") for path in nodes)
        assert one == two, f"a transaction is done by halves: {one} and {two} znodes"
        assert len(made) <= one <= len(made) + len(doubt), (
            f"{len(made)} transactions have returned and {len(doubt)} are in doubt, but {one} "
            "are done"
        )

    for name in NAMES:
        world.process(name, user, world, name)
    world.finally_(counted)
