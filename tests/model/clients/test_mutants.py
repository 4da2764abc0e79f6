"""Each mutant of the clients violates the property that its row names.

The same runs with corrected clients violate none. A fault that needs one order of tasks has
several runs: at least one detects it, and none violates anything with corrected clients.
"""

from __future__ import annotations

import pytest

from tests import HOME
from tests.model.clients.test_streams import preset
from tests.mutants.clients import CLIENT_MUTANTS
from tests.support.messages.client_runs import RUNS
from tests.support.messages.cluster import Cluster, slowly
from tests.support.messages.mutant_runs import verdicts
from watchkeeper import simulate
from watchkeeper.model.clients.compositions.kafka_07 import (
    AS_SHIPPED,
    SOUND,
    ClientSet,
    clients_of,
)
from watchkeeper.model.group.variants import DOCUMENTED, HARDENED, KAFKA_07, KAFKA_08, Variant
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind


def test_there_is_a_run_for_each() -> None:
    """Each names the origin and the fault."""
    assert RUNS.keys() == CLIENT_MUTANTS.keys()
    assert all(mutant.origin and mutant.about for mutant in CLIENT_MUTANTS.values())
    assert all(mutant.clients != SOUND for mutant in CLIENT_MUTANTS.values())


@pytest.mark.parametrize("name", RUNS)
def test_a_mutant_is_detected(name: str) -> None:
    """By the property that its row states."""
    assert Verdict.VIOLATED in verdicts(CLIENT_MUTANTS[name])


@pytest.mark.parametrize("name", RUNS)
def test_sound_clients_violate_nothing_there(name: str) -> None:
    """Neither that property nor another."""
    for cluster, guarantee in RUNS[name](SOUND):
        assert cluster.violated(guarantee) == []
        stated = cluster.finding(CLIENT_MUTANTS[name].violates.name, guarantee)
        assert stated.verdict is Verdict.HOLDS, stated.evidence


# --- all of them together ------------------------------------------------------------------


def test_shipped_clients_go_with_the_shipped_protocol() -> None:
    """Only 0.7.2: later versions have a different log."""
    assert clients_of(KAFKA_07) is AS_SHIPPED
    assert all(clients_of(variant) is SOUND for variant in (DOCUMENTED, KAFKA_08, HARDENED))


def test_shipped_clients_deliver_where_nothing_goes_wrong() -> None:
    """A member reads alone, and another after it has left."""
    cluster = Cluster(variant=KAFKA_07, clients=AS_SHIPPED, brokers=2)
    for broker in range(2):
        cluster.write("clicks", broker, 0, 50)
    cluster.member("c0", {"clicks": 1}, slowly(20))
    cluster.world.run(1500)
    cluster.stop("c0")
    cluster.member("c1", {"clicks": 1})
    cluster.world.run(10_000)

    assert cluster.finding("delivery").verdict is Verdict.HOLDS
    assert cluster.handed_to("c1")


@pytest.mark.parametrize(
    "name", ["broker-disk-full", "mirror-crash", "producer-crash", "rebalance-duplicates"]
)
def test_shipped_clients_run_where_several_brokers_are(name: str) -> None:
    """Each fetcher writes to ZooKeeper by itself, also while another one waits for it."""
    result = simulate(name, variant="kafka_07")

    assert result.trace.of_kind(EventKind.CONSUMED)
    assert result.trace.of_kind(EventKind.OFFSET_RESET)


@pytest.mark.parametrize(
    ("variant", "clients", "committed"),
    [(KAFKA_07, AS_SHIPPED, 10 * 50), (HARDENED, SOUND, 10_000)],
    ids=["shipped", "sound"],
)
def test_who_commits_a_place_that_was_out_of_range(
    variant: Variant, clients: ClientSet, committed: int
) -> None:
    """In 0.7.2 the fetcher commits it at once; otherwise the next commit includes it."""
    cluster = Cluster(variant=variant, clients=clients)
    cluster.write("clicks", 0, 0, 10)
    preset(cluster, 10_000)
    off = {"auto_commit_enable": False, "auto_offset_reset": "largest"}
    cluster.member("c0", {"clicks": 1}, **off)
    cluster.world.run(3000)

    assert cluster.handed_to("c0") == []
    assert cluster.offset("clicks", "0-0") == committed


def test_the_page_of_delivery_lists_every_mutant() -> None:
    """With the property that it violates, in the order of the table."""
    page = (HOME / "docs/explanation/delivery.md").read_text()
    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| ")]

    listed = [(name.removeprefix("| "), what) for name, what in rows]
    expected = {(mutant.name, mutant.violates.name) for mutant in CLIENT_MUTANTS.values()}
    assert expected <= set(listed)
