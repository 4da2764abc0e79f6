"""Programs that use each recipe of kazoo as its documentation shows, and what has to hold.

Each function prepares a world: three processes, unless it says otherwise. An error of a request
is what a careful user makes of it: the attempt is given up, and begun again a moment later.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.recipe.cache import TreeCache
from kazoo.recipe.watchers import PatientChildrenWatch

from watchkeeper.virtual.world.checks import Elements
from watchkeeper.virtual.world.world import World

NAMES = ("ann", "bob", "cid")
ROUNDS = 3
GIVEN_UP = (KazooException, KazooTimeoutError, LockTimeout)
LONG_S = 45.0
"""After so long a process stops, whatever it has reached."""

Prepare = Callable[[World], None]


@contextmanager
def client_of(world: World) -> Iterator[Any]:
    """A started client, which tries again for as long as a run lasts."""
    client = KazooClient(hosts=world.hosts, timeout=4.0)
    while True:
        try:
            client.start(timeout=15)
            break
        except KazooTimeoutError:
            if world.now_s > LONG_S:
                raise
    try:
        yield client
    finally:
        with suppress(*GIVEN_UP):
            client.stop()
            client.close()


def persist(world: World, attempt: Callable[[], object]) -> bool:
    """Try until it succeeds, or until the process has had its time; whether it has succeeded."""
    while world.now_s < LONG_S:
        try:
            attempt()
            return True
        except GIVEN_UP:
            time.sleep(0.3)
    return False


def rounds(
    world: World, name: str, done: dict[str, int], body: Callable[[Any, World, str], object]
) -> None:
    """Call `body` until it has succeeded `ROUNDS` times."""
    with client_of(world) as client:
        while done.get(name, 0) < ROUNDS and world.now_s < LONG_S:
            try:
                body(client, world, name)
            except GIVEN_UP:
                time.sleep(0.3)
                continue
            done[name] = done.get(name, 0) + 1


def in_rounds(body: Callable[[Any, World, str], object]) -> Prepare:
    """A world in which each process calls `body` some rounds, and all of them get there."""

    def prepare(world: World) -> None:
        done: dict[str, int] = {}
        for name in NAMES:
            world.process(name, rounds, world, name, done, body)

        def all_got_their_turns() -> bool:
            alive = {process.name for process in world.scheduler.processes if process.is_alive}
            return all(done.get(name, 0) >= ROUNDS for name in NAMES if name in alive)

        world.eventually(all_got_their_turns, within_s=40)

    return prepare


# --- locks -----------------------------------------------------------------------------


def _lock(client: Any, world: World, name: str) -> None:
    with client.Lock("/lock", name), world.section("lock", client):
        time.sleep(0.05)


def _read_write(client: Any, world: World, name: str) -> None:
    if name == NAMES[0]:
        with client.WriteLock("/rw", name), world.section("written", client):
            time.sleep(0.05)
    else:
        with client.ReadLock("/rw", name), world.section("read", client, most=2):
            time.sleep(0.05)
            assert_no_writer(world)


def assert_no_writer(world: World) -> None:
    """A reader finds no writer whose session lives."""
    check = world.sections.get("written")
    if check is not None:
        writers = [entry for entry in check.inside if entry.is_safe(world)]
        readers = [entry for entry in world.sections["read"].inside if entry.is_safe(world)]
        mine = world.scheduler.running
        if writers and any(entry.task is mine for entry in readers):
            raise AssertionError(f"{writers[0].name} writes while {mine.process.name} reads")  # type: ignore[union-attr]


def _semaphore(client: Any, world: World, name: str) -> None:
    semaphore = client.Semaphore("/semaphore", name, max_leases=2)
    with semaphore, world.section("semaphore", client, most=2):
        time.sleep(0.05)


def election(world: World) -> None:
    """Each process leads once; the call of `run` returns when the leader has done its work."""
    led: dict[str, int] = {}

    def campaign(world: World, name: str) -> None:
        with client_of(world) as client:

            def lead() -> None:
                with world.section("leading", client):
                    time.sleep(0.2)
                    led[name] = led.get(name, 0) + 1

            persist(world, lambda: client.Election("/election", name).run(lead))

    for name in NAMES:
        world.process(name, campaign, world, name)
    world.eventually(
        lambda: all(led.get(name) for name in _alive(world)), within_s=40, name="each has led"
    )


def _alive(world: World) -> list[str]:
    return [process.name for process in world.scheduler.processes if process.is_alive]


def _lease(client: Any, world: World, name: str) -> None:
    lease = client.NonBlockingLease("/lease", datetime.timedelta(seconds=1), name)
    if not lease:
        raise LockTimeout("another holds the lease")
    with world.section("lease", client):
        time.sleep(0.2)


def _multi_lease(client: Any, world: World, name: str) -> None:
    lease = client.MultiNonBlockingLease(2, "/leases", datetime.timedelta(seconds=1), name)
    if not lease:
        raise LockTimeout("others hold the leases")
    with world.section("leases", client, most=2):
        time.sleep(0.2)


# --- barriers --------------------------------------------------------------------------


def barrier(world: World) -> None:
    """One process makes the barrier and removes it; the others pass only then."""
    state = {"made": False, "removed": False}
    passed: list[str] = []

    def keeper(world: World) -> None:
        with client_of(world) as client:
            persist(world, client.Barrier("/barrier").create)
            state["made"] = True
            time.sleep(1)
            state["removed"] = True
            persist(world, client.Barrier("/barrier").remove)

    def waiter(world: World, name: str) -> None:
        with client_of(world) as client:
            while not state["made"] and world.now_s < LONG_S:
                time.sleep(0.05)

            def wait() -> None:
                if not client.Barrier("/barrier").wait(10):
                    raise LockTimeout("the barrier stands")
                assert state["removed"], f"{name} has passed a barrier that stands"
                passed.append(name)

            persist(world, wait)

    world.process("keeper", keeper, world)
    for name in NAMES[:2]:
        world.process(name, waiter, world, name)

    def all_pass() -> bool:
        is_left = not state["removed"] and "keeper" not in _alive(world)
        return is_left or {*passed} >= {*_alive(world)} & {*NAMES}

    world.eventually(all_pass, within_s=40)


def double_barrier(world: World) -> None:
    """All enter before one goes on, and all leave, unless one crashes before it has entered."""
    entered: list[str] = []
    left: list[str] = []
    begun: list[str] = []

    def member(world: World, name: str) -> None:
        if name in entered:
            return  # it starts anew after a crash, and has been through
        with client_of(world) as client:
            gate = client.DoubleBarrier("/double", len(NAMES), name)
            begun.append(name)
            while not gate.participating and world.now_s < LONG_S:
                gate.enter()
            if not gate.participating:
                return
            assert {*begun} == {*NAMES}, f"{name} is alone behind the barrier"
            entered.append(name)
            time.sleep(0.1)
            gate.leave()
            left.append(name)

    def all_leave() -> bool:
        alive = _alive(world)
        is_short = any(name not in entered for name in NAMES if name not in alive)
        return is_short or all(name in left for name in alive)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(all_leave, within_s=40)


# --- counters and queues ---------------------------------------------------------------


def counter(world: World) -> None:
    """The counter has what was added: each acknowledged addition once."""
    sure: list[int] = []
    doubt: list[int] = []

    def adder(world: World, name: str) -> None:
        with client_of(world) as client:
            shared = client.Counter("/counter")
            for _ in range(ROUNDS):
                doubt.append(1)
                with suppress(*GIVEN_UP):
                    shared += 1
                    doubt.pop()
                    sure.append(1)
                time.sleep(0.02)

    def counted() -> None:
        node = world.zookeeper.ensemble.head.nodes.get("/counter")
        value = int(node.data or b"0") if node is not None else 0
        assert len(sure) <= value <= len(sure) + len(doubt), (
            f"{len(sure)} additions are acknowledged and {len(doubt)} in doubt, but the counter "
            f"is {value}"
        )

    for name in NAMES:
        world.process(name, adder, world, name)
    world.finally_(counted)


def queue(world: World) -> None:
    """Each element that was put is got once."""

    def take(shared: Any, elements: Elements) -> None:
        elements.excuse()  # until it is known what the get has done
        element = shared.get()
        elements.excused -= 1
        if element is not None:
            elements.took(element, world)
        else:
            time.sleep(0.05)

    _queue(world, "Queue", "/queue", take)


def locking_queue(world: World) -> None:
    """Each element that was put is got and consumed once; it may be got by several."""

    def take(shared: Any, elements: Elements) -> None:
        element = shared.get(2)
        if element is None:
            return
        elements.hold(element)
        if shared.consume():
            elements.took(element, world)

    _queue(world, "LockingQueue", "/queue/entries", take)


def _queue(
    world: World, recipe: str, folder: str, take: Callable[[Any, Elements], object]
) -> None:
    starts = count(1)

    def left() -> list[bytes]:
        nodes = world.zookeeper.ensemble.head.nodes
        return [
            node.data or b"" for path, node in nodes.items() if path.startswith(f"{folder}/entry")
        ]

    elements = world.elements("queue", left)
    finished: list[int] = []

    def is_emptied() -> bool:
        return bool(finished or "producer" not in _alive(world)) and not left()

    def producer(world: World) -> None:
        start = next(starts)  # a producer that starts anew has elements of its own
        with client_of(world) as client:
            shared = getattr(client, recipe)("/queue")
            for at in range(6):
                element = b"%d.%d" % (start, at)
                elements.put_in_doubt(element)
                with suppress(*GIVEN_UP):
                    shared.put(element)
                    elements.put(element)
                time.sleep(0.01)
        finished.append(start)

    def consumer(world: World) -> None:
        with client_of(world) as client:
            shared = getattr(client, recipe)("/queue")
            while not is_emptied() and world.now_s < LONG_S:
                try:
                    take(shared, elements)
                except NoNodeError:  # the lock of a LockingQueue is gone, and it does not forget
                    shared = getattr(client, recipe)("/queue")
                except GIVEN_UP:
                    time.sleep(0.05)

    world.process("producer", producer, world)
    for name in NAMES[:2]:
        world.process(name, consumer, world)
    world.eventually(is_emptied, within_s=40, name="the queue is emptied")


# --- groups ----------------------------------------------------------------------------


def party(world: World) -> None:
    """In the end the party has the members that have joined and live, each once."""
    _party(world, "Party")


def shallow_party(world: World) -> None:
    """In the end the party has the members that have joined and live, each once."""
    _party(world, "ShallowParty")


def _party(world: World, recipe: str) -> None:
    seen: dict[str, list[str]] = {}

    def member(world: World, name: str) -> None:
        with client_of(world) as client:
            group = getattr(client, recipe)("/party", name)
            if not persist(world, group.join):
                return
            while world.now_s < LONG_S:
                with suppress(*GIVEN_UP):
                    seen[name] = sorted(group)
                time.sleep(3)

    def complete() -> bool:
        alive = sorted(name for name in NAMES if name in _alive(world))
        return bool(alive) and all(seen.get(name) == alive for name in alive)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(complete, within_s=30, name="the party is complete")


def set_partitioner(world: World) -> None:
    """Each partition has at most one owner, and in the end exactly one."""
    partitions = ("p0", "p1", "p2", "p3")
    owned: dict[str, tuple[str, ...]] = {}

    def member(world: World, name: str) -> None:
        with client_of(world) as client:
            share = None
            while world.now_s < LONG_S:
                try:
                    share = step(client, name, share)
                except GIVEN_UP:
                    time.sleep(0.3)

    def step(client: Any, name: str, share: Any) -> Any:
        """What kazoo's documentation shows as the loop of a member."""
        if share is None:
            return client.SetPartitioner(
                "/set", set=partitions, identifier=name, time_boundary=0.5
            )
        owned[name] = tuple(sorted(share)) if share.acquired else ()
        if share.failed:
            share.finish()
            return None
        if share.release:
            share.release_set()
        elif share.allocating:
            share.wait_for_acquire(5)
        else:
            time.sleep(0.2)
        return share

    def covered() -> bool:
        held = [each for name in _alive(world) for each in owned.get(name, ())]
        return sorted(held) == sorted(partitions)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(covered, within_s=30, name="each partition has one owner")


# --- watchers --------------------------------------------------------------------------

CHANGES = 5


def children_watch(world: World) -> None:
    """The watcher has seen the last children."""

    def watch(client: Any, seen: list[Any]) -> None:
        client.ChildrenWatch("/watched", lambda children: seen.append(sorted(children)))

    _watch(world, watch, _children_of)


def patient_children_watch(world: World) -> None:
    """The watcher has seen the last children, each time they were calm."""

    def watch(client: Any, seen: list[Any]) -> None:
        while True:
            result = PatientChildrenWatch(client, "/watched", time_boundary=0.2).start()
            children, changed = result.get()
            seen.append(sorted(children))
            changed.wait()

    _watch(world, watch, _children_of)


def data_watch(world: World) -> None:
    """The watcher has seen the last data."""

    def watch(client: Any, seen: list[Any]) -> None:
        client.DataWatch("/watched", lambda data, stat: seen.append(data))

    _watch(world, watch, lambda world: _node(world).data)


def tree_cache(world: World) -> None:
    """The cache has the last children."""

    def watch(client: Any, seen: list[Any]) -> None:
        cache = TreeCache(client, "/watched")
        cache.start()
        while True:
            seen.append(sorted(cache.get_children("/watched") or ()))
            time.sleep(0.3)

    _watch(world, watch, _children_of)


def _node(world: World) -> Any:
    return world.zookeeper.ensemble.head.nodes["/watched"]


def _children_of(world: World) -> list[str]:
    nodes = world.zookeeper.ensemble.head.nodes
    return sorted(path.rpartition("/")[2] for path in nodes if path.startswith("/watched/"))


def _watch(
    world: World, watch: Callable[[Any, list[Any]], None], truth: Callable[[World], Any]
) -> None:
    seen: list[Any] = []
    done: list[bool] = []

    def writer(world: World) -> None:
        with client_of(world) as client:
            persist(world, lambda: client.ensure_path("/watched"))
            for at in range(CHANGES):
                persist(world, lambda at=at: client.ensure_path(f"/watched/{at}"))  # type: ignore[misc]
                persist(world, lambda at=at: client.set("/watched", b"%d" % at))  # type: ignore[misc]
                time.sleep(0.1)
            done.append(True)

    def watcher(world: World) -> None:
        with client_of(world) as client:
            persist(world, lambda: client.ensure_path("/watched"))
            persist(world, lambda: watch(client, seen))
            while world.now_s < LONG_S:
                time.sleep(0.5)

    def is_current() -> bool:
        if "watcher" not in _alive(world) or ("writer" in _alive(world) and not done):
            return "watcher" not in _alive(world)
        return bool(seen) and seen[-1] == truth(world)

    world.process("writer", writer, world)
    world.process("watcher", watcher, world)
    world.eventually(is_current, within_s=30, name="the watcher has seen the last state")


# --- clients ---------------------------------------------------------------------------


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
        lambda: {*finished} >= {*_alive(world)}, within_s=40, name="each client stops"
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


PROGRAMS: dict[str, Prepare] = {
    "Lock": in_rounds(_lock),
    "ReadLock and WriteLock": in_rounds(_read_write),
    "Semaphore": in_rounds(_semaphore),
    "Election": election,
    "Barrier": barrier,
    "DoubleBarrier": double_barrier,
    "Counter": counter,
    "Party": party,
    "ShallowParty": shallow_party,
    "Queue": queue,
    "LockingQueue": locking_queue,
    "SetPartitioner": set_partitioner,
    "ChildrenWatch": children_watch,
    "DataWatch": data_watch,
    "PatientChildrenWatch": patient_children_watch,
    "TreeCache": tree_cache,
    "NonBlockingLease": in_rounds(_lease),
    "MultiNonBlockingLease": in_rounds(_multi_lease),
    "start, stop, restart": start_stop,
    "retry": retries,
    "transaction": transactions,
}
"""Recipe -> the program that uses it."""
