"""What searches in virtual time found in kazoo's recipes, once more on real servers.

    python bench/recipes_live.py [--kinds java,python] [--json]

Each case loses the reply of exactly one request of an unmodified kazoo client, by a proxy before
a real ZooKeeper: the request takes effect, and its connection breaks in place of the reply. The
table has what followed on Apache's server and on this project's; docs/kazoo-recipes.md has the
runs in virtual time. Apache's server needs Java 17 and PySpark.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import NAMES, Wanted, start
from kazoo.client import KazooClient

from watchkeeper.real.proxy.proxy import Proxy

Lose = Callable[[], None]
Case = Callable[[Any, Lose], str]


def before_call(client: Any, method: str, lose: Lose) -> None:
    """Arm the loss when the client's method is called next."""
    original = getattr(client, method)

    def call(*args: Any, **kwargs: Any) -> Any:
        setattr(client, method, original)
        lose()
        return original(*args, **kwargs)

    setattr(client, method, call)


def counter(client: Any, lose: Lose) -> str:
    """Add twice; the reply of the second write is lost."""
    shared = client.Counter("/counter")
    shared += 1
    before_call(client, "set", lose)
    shared += 1
    return f"2 additions, the counter is {client.Counter('/counter').value}"


def queue(client: Any, lose: Lose) -> str:
    """Put two elements and get one; the reply of its delete is lost."""
    shared = client.Queue("/queue")
    shared.put(b"one")
    shared.put(b"two")
    before_call(client, "delete", lose)
    element = shared.get()
    return (
        f"2 elements put, one got: {element.decode()}; left: {len(client.get_children('/queue'))}"
    )


def sequence(client: Any, lose: Lose) -> str:
    """Create one sequential znode by `retry`; the reply is lost."""
    client.ensure_path("/jobs")
    lose()
    client.retry(client.create, "/jobs/job-", b"", sequence=True)
    return f"1 create has returned, znodes: {len(client.get_children('/jobs'))}"


def ephemeral(client: Any, lose: Lose) -> str:
    """Create an ephemeral by `retry`; the reply is lost."""
    lose()
    try:
        client.retry(client.create, "/leader", b"", ephemeral=True)
    except Exception as error:
        stat = client.exists("/leader")
        owner = "its own" if stat.ephemeralOwner == client.client_id[0] else "another one's"
        return f"{type(error).__name__}, and the znode is {owner}"
    return "created"


def delete(client: Any, lose: Lose) -> str:
    """Delete a znode by `retry`; the reply is lost."""
    client.create("/znode")
    lose()
    try:
        client.retry(client.delete, "/znode")
    except Exception as error:
        return f"{type(error).__name__}, though it was deleted"
    return "deleted"


CASES: dict[str, tuple[Case, str]] = {
    "Counter, the reply of its set": (counter, "the counter is 3"),
    "Queue, the reply of its delete": (queue, "one got: two; left: 0"),
    "retry of a sequential create": (sequence, "znodes: 2"),
    "retry of an ephemeral create": (ephemeral, "NodeExistsError, and the znode is its own"),
    "retry of a delete": (delete, "NoNodeError, though it was deleted"),
}
"""What is lost -> the case, and what it ends with if the recipe is as virtual time found it."""


def seen(kind: Any) -> dict[str, str]:
    """What each case ends with on one kind of server."""
    found = {}
    with ExitStack() as stack:
        zookeeper = stack.enter_context(start(kind, Wanted()))
        proxy = stack.enter_context(Proxy(zookeeper.addresses))
        for number, (name, (case, _)) in enumerate(CASES.items()):
            effects: Counter[str] = Counter()

            def count(effect: str, times: int = 1, effects: Counter[str] = effects) -> None:
                effects[effect] += times

            client = KazooClient(hosts=proxy.hosts_of(f"client-{number}"))
            client.start(timeout=30)
            try:
                found[name] = case(
                    client,
                    lambda number=number, count=count: _lose(proxy, number, count),  # type: ignore[misc]
                )
            finally:
                client.stop()
                client.close()
            assert effects["replies lost"] == 1, f"{name}: one reply is lost, not {effects}"
    return found


def _lose(proxy: Proxy, number: int, count: Any) -> None:
    proxy.lose_reply(f"client-{number}", count)


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--kinds", default="java,python")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    kinds = options.kinds.split(",")
    found = {kind: seen(kind) for kind in kinds}
    report = Report("kazoo's recipes with one lost reply", ("case", *(NAMES[k] for k in kinds)))
    report.rows = [[name, *(found[kind][name] for kind in kinds)] for name in CASES]
    same = sum(CASES[name][1] in found[kind][name] for name in CASES for kind in kinds)
    report.bars.append(
        Bar("as in virtual time", "at least", len(CASES) * len(kinds), "cases", once(same))
    )
    report.data = found
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
