"""What searches in virtual time found in kazoo's recipes, once more on real servers.

    python bench/recipes_live.py [--kinds java,python] [--json]

Each case strikes an unmodified kazoo client with exactly one fault, by a proxy before a real
ZooKeeper: a reply is lost with its connection, a request arrives late, a connection breaks, a
session ends. The table has what followed on Apache's server and on this project's;
docs/kazoo-recipes.md has the runs in virtual time. Apache's server needs Java 17 and PySpark, and
two of the cases are of tooz (the extra `test`).
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import NAMES, Wanted, start
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, LockTimeout
from tooz import coordination

from watchkeeper.real.proxy.proxy import Proxy

LATE_S = 1.0
"""How long after its connection a late request arrives."""
PATIENCE_S = 4.0
"""For how long a case waits for what does not come."""

LOST, LATE = "replies lost", "late requests landed"
BROKEN, ENDED, SKEWED = "connections broken", "sessions ended", "clocks read that are ahead"

Strike = Callable[[], None]


class Struck:
    """A client behind the proxy, what can strike it, and another client that nothing strikes."""

    def __init__(self, proxy: Proxy, name: str, hosts: str) -> None:
        self._proxy = proxy
        self._name = name
        self.hosts = hosts
        self.effects: Counter[str] = Counter()
        self.client = self._started(proxy.hosts_of(name))
        self.other = self._started(hosts)

    def _started(self, hosts: str, **options: Any) -> Any:
        client = KazooClient(hosts=hosts, timeout=6.0, **options)
        client.start(timeout=30)
        return client

    def close(self) -> None:
        """Stop both clients."""
        for client in (self.client, self.other):
            with suppress(KazooException):
                client.stop()
            client.close()

    def _count(self, effect: str, times: int = 1) -> None:
        self.effects[effect] += times

    def lose_reply(self) -> None:
        """Lose the reply to the next request."""
        self._proxy.lose_reply(self._name, self._count)

    def delay_request(self) -> None:
        """Break the connection at the next request, which arrives some time later."""
        self._proxy.lose_request(self._name, self._count, lands_after_s=LATE_S)

    def break_connection(self) -> None:
        """Break the connection now, and wait until the client knows."""
        knows = self.waits_for(KazooState.SUSPENDED)
        self._proxy.disconnect(self._name, self._count)
        knows.wait(PATIENCE_S)

    def end_session(self) -> None:
        """End the client's session, and wait until it has another one."""
        is_back = self.waits_for(KazooState.CONNECTED)
        twin = self._started(self.hosts, client_id=self.client.client_id)
        twin.stop()
        twin.close()
        self._count("sessions ended")
        is_back.wait(PATIENCE_S)
        time.sleep(0.5)

    def count_skew(self) -> None:
        """Count that a clock has been read that is ahead."""
        self._count(SKEWED)

    def waits_for(self, state: str) -> Event:
        """An event that is set when the client comes into a state."""
        event = Event()
        self.client.add_listener(lambda now: event.set() if now == state else None)
        return event

    def at_call(
        self, method: str, *, before: Strike = lambda: None, after: Strike = lambda: None
    ) -> None:
        """Strike when this method is called next, or when that call has its result."""
        original = getattr(self.client, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            setattr(self.client, method, original)
            before()
            result = original(*args, **kwargs)
            after()
            return result

        setattr(self.client, method, call)


def outcome_of(call: Callable[[], object]) -> str:
    """What a call ends with: the name of its error, or its result."""
    try:
        return str(call())
    except KazooException as error:
        return type(error).__name__


def counter(struck: Struck) -> str:
    """Add twice; the reply of the second write is lost."""
    shared = struck.client.Counter("/counter")
    shared += 1
    struck.at_call("set", before=struck.lose_reply)
    shared += 1
    return f"2 additions, the counter is {struck.other.Counter('/counter').value}"


def queue(struck: Struck) -> str:
    """Put two elements and get one; the reply of its delete is lost."""
    shared = struck.client.Queue("/queue")
    shared.put(b"one")
    shared.put(b"two")
    struck.at_call("delete", before=struck.lose_reply)
    element = shared.get()
    left = len(struck.other.get_children("/queue"))
    return f"2 elements put, one got: {element.decode()}; left: {left}"


def locking_queue(struck: Struck) -> str:
    """Get an element; the reply of the create of its lock is lost."""
    struck.other.LockingQueue("/locking").put(b"one")
    shared = struck.client.LockingQueue("/locking")
    struck.at_call("create", before=struck.lose_reply)
    first = outcome_of(lambda: shared.get(1))
    second = shared.get(1)
    third = struck.other.LockingQueue("/locking").get(1)
    return f"{first}; then its client gets {second}, another one {third}"


def double_barrier(struck: Struck) -> str:
    """Wait at a barrier of two; the connection breaks, and the other one comes."""
    waiting = Thread(target=struck.client.DoubleBarrier("/gate", 2, "a").enter, daemon=True)
    waiting.start()
    while not struck.other.exists("/gate") or not struck.other.get_children("/gate"):
        time.sleep(0.02)
    time.sleep(0.2)
    is_back = struck.waits_for(KazooState.CONNECTED)
    struck.break_connection()
    is_back.wait(PATIENCE_S)
    passing = Thread(target=struck.other.DoubleBarrier("/gate", 2, "b").enter, daemon=True)
    passing.start()
    passing.join(PATIENCE_S)
    waiting.join(PATIENCE_S)
    return f"{_passed(passing)}; the one whose connection broke {_passed(waiting)}"


def _passed(thread: Thread) -> str:
    return "still waits" if thread.is_alive() else "has entered"


def children_watch(struck: Struck) -> str:
    """The connection breaks when the reply to `get_children` is there and not yet looked at."""
    seen: list[int] = []
    struck.client.ensure_path("/watched")
    struck.client.ChildrenWatch("/watched", lambda children: seen.append(len(children)))
    is_back = struck.waits_for(KazooState.CONNECTED)
    struck.at_call("get_children", after=struck.break_connection)
    struck.other.create("/watched/one")
    is_back.wait(PATIENCE_S)
    time.sleep(0.5)
    struck.other.create("/watched/two")
    time.sleep(PATIENCE_S)
    return f"2 children, the watcher has seen {seen[-1]}"


def party(struck: Struck) -> str:
    """Join; the session ends."""
    struck.client.Party("/party", "a").join()
    struck.end_session()
    return f"1 has joined, members: {len(list(struck.other.Party('/party', 'b')))}"


def lock(struck: Struck) -> str:
    """Acquire and release; the first create of the contender's znode arrives late."""
    mine = struck.client.Lock("/lock", "a")
    struck.at_call("create", before=struck.delay_request)
    mine.acquire()
    time.sleep(LATE_S * 2)
    mine.release()
    try:
        struck.other.Lock("/lock", "b").acquire(timeout=PATIENCE_S)
    except LockTimeout:
        return "acquired and released, and another one waits for it"
    return "acquired and released, and another one has it"


def lease(struck: Struck) -> str:
    """Take a lease of 20 s; the clock of another client is 30 s ahead."""
    duration = timedelta(seconds=20)
    held = bool(struck.client.NonBlockingLease("/lease", duration, "a"))

    def ahead() -> datetime:
        struck.count_skew()
        return datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=30)

    taken = bool(struck.other.NonBlockingLease("/lease", duration, "b", utcnow=ahead))
    return f"a has the lease: {held}; b, whose clock is ahead, has it at once: {taken}"


def set_partitioner(struck: Struck) -> str:
    """Divide one partition; the first create of a lock's znode arrives late, then it leaves."""
    struck.client.ensure_path("/set/party")
    mine = struck.client.SetPartitioner("/set", {"p"}, identifier="a", time_boundary=1)
    while not struck.other.get_children("/set/party"):
        time.sleep(0.02)
    struck.at_call("create", before=struck.delay_request)
    mine.wait_for_acquire(PATIENCE_S)
    is_mine = mine.acquired
    time.sleep(LATE_S * 2)
    mine.release_set()
    try:
        struck.other.Lock("/set/locks/p", "b").acquire(timeout=PATIENCE_S)
    except LockTimeout:
        return f"acquired: {is_mine}, then released, and another one waits for its lock"
    return f"acquired: {is_mine}, then released, and another one has its lock"


def tooz_group(struck: Struck) -> str:
    """Join a group by tooz; the session ends."""
    coordinator = coordinator_of(struck)
    coordinator.join_group(b"g").get()
    struck.end_session()
    members = sorted(each.decode() for each in coordinator.get_members(b"g").get())
    return f"a has joined, and its heartbeats go on; members: {members}"


def tooz_leader(struck: Struck) -> str:
    """Lead by tooz; the session ends, and another one campaigns."""
    leads: list[str] = []
    coordinator = coordinator_of(struck)
    coordinator.watch_elected_as_leader(b"g", lambda event: leads.append("a"))
    coordinator.run_watchers()
    struck.end_session()
    other = coordination.get_coordinator(f"zookeeper://{struck.hosts}", b"b")
    other.start()
    other.watch_elected_as_leader(b"g", lambda event: leads.append("b"))
    other.run_watchers()
    coordinator.run_watchers()
    other.stop()
    return f"elected: {leads}; a holds the lead by its own account: {_leads(coordinator)}"


def coordinator_of(struck: Struck) -> Any:
    """A coordinator of tooz with the struck client, in a group."""
    coordinator: Any = coordination.get_coordinator(f"zookeeper://{struck.hosts}", b"a")
    coordinator._coord = struck.client
    coordinator.start()
    with suppress(coordination.GroupAlreadyExist):
        coordinator.create_group(b"g").get()
    return coordinator


def _leads(coordinator: Any) -> bool:
    return bool(coordinator._get_group_leader_lock(b"g").is_acquired)


def sequence(struck: Struck) -> str:
    """Create one sequential znode by `retry`; the reply is lost."""
    client = struck.client
    client.ensure_path("/jobs")
    struck.lose_reply()
    client.retry(client.create, "/jobs/job-", b"", sequence=True)
    return f"1 create has returned, znodes: {len(client.get_children('/jobs'))}"


def ephemeral(struck: Struck) -> str:
    """Create an ephemeral by `retry`; the reply is lost."""
    client = struck.client
    struck.lose_reply()
    outcome = outcome_of(lambda: client.retry(client.create, "/leader", b"", ephemeral=True))
    stat = client.exists("/leader")
    owner = "its own" if stat.ephemeralOwner == client.client_id[0] else "another one's"
    return f"{outcome}, and the znode is {owner}"


def delete(struck: Struck) -> str:
    """Delete a znode by `retry`; the reply is lost."""
    client = struck.client
    client.create("/znode")
    struck.lose_reply()
    return f"{outcome_of(lambda: client.retry(client.delete, '/znode'))}, though it was deleted"


@dataclass(frozen=True, slots=True)
class Case:
    """What one strike does to a recipe."""

    run: Callable[[Struck], str]
    effect: str
    """What the strike does exactly once."""
    ends_with: str
    """What the case ends with if the recipe is as virtual time found it."""


CASES = {
    "Counter, the reply of its set": Case(counter, LOST, "the counter is 3"),
    "Queue, the reply of its delete": Case(queue, LOST, "one got: two; left: 0"),
    "LockingQueue, the reply of its create": Case(
        locking_queue, LOST, "then its client gets None, another one None"
    ),
    "DoubleBarrier, a broken connection": Case(
        double_barrier,
        BROKEN,
        "has entered; the one whose connection broke still waits",
    ),
    "ChildrenWatch, a broken connection": Case(
        children_watch, BROKEN, "2 children, the watcher has seen 1"
    ),
    "Party, an expired session": Case(party, ENDED, "1 has joined, members: 0"),
    "Lock, a late create": Case(lock, LATE, "another one waits for it"),
    "NonBlockingLease, a clock that is ahead": Case(lease, SKEWED, "has it at once: True"),
    "SetPartitioner, a late create": Case(
        set_partitioner, LATE, "another one waits for its lock"
    ),
    "tooz: group, an expired session": Case(tooz_group, ENDED, "members: []"),
    "tooz: leader, an expired session": Case(
        tooz_leader, ENDED, "elected: ['a', 'b']; a holds the lead by its own account: True"
    ),
    "retry of a sequential create": Case(sequence, LOST, "znodes: 2"),
    "retry of an ephemeral create": Case(
        ephemeral, LOST, "NodeExistsError, and the znode is its own"
    ),
    "retry of a delete": Case(delete, LOST, "NoNodeError, though it was deleted"),
}


def seen(kind: Any) -> dict[str, str]:
    """What each case ends with on one kind of server."""
    found = {}
    with ExitStack() as stack:
        zookeeper = stack.enter_context(start(kind, Wanted()))
        proxy = stack.enter_context(Proxy(zookeeper.addresses))
        for number, (name, case) in enumerate(CASES.items()):
            struck = Struck(proxy, f"client-{number}", zookeeper.hosts)
            try:
                found[name] = case.run(struck)
            finally:
                struck.close()
            assert struck.effects[case.effect] == 1, (
                f"{name}: one of {case.effect!r} is expected, not {struck.effects}"
            )
    return found


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--kinds", default="java,python")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    kinds = options.kinds.split(",")
    found = {kind: seen(kind) for kind in kinds}
    report = Report("kazoo's recipes, each struck once", ("case", *(NAMES[k] for k in kinds)))
    report.rows = [[name, *(found[kind][name] for kind in kinds)] for name in CASES]
    same = sum(CASES[name].ends_with in found[kind][name] for name in CASES for kind in kinds)
    report.bars.append(
        Bar("as in virtual time", "at least", len(CASES) * len(kinds), "cases", once(same))
    )
    report.data = found
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
