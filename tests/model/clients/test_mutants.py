"""Each mistake that is planted into clients violates the property that is stated.

The same runs with sound clients violate none. A mistake that needs one order of threads is
looked for in several: at least one shows it, and none shows anything of sound clients.
"""

from __future__ import annotations

import pytest

from model.clients.flaws import CLIENT_PLANTS
from model.clients.versions import AS_SHIPPED, SOUND, Clients, clients_of
from model.variants import DOCUMENTED, HARDENED, KAFKA_07, KAFKA_08, Variant
from model.verdicts import Verdict
from tests.client_runs import RUNS
from tests.message_cluster import Cluster, slowly
from tests.planted import verdicts
from tests.readme_pages import HOME
from tests.test_streams import preset
from watchkeeper import simulate


def test_there_is_a_run_for_each() -> None:
    """And each says where it was made, and what it does."""
    assert RUNS.keys() == CLIENT_PLANTS.keys()
    assert all(plant.origin and plant.about for plant in CLIENT_PLANTS.values())
    assert all(plant.clients != SOUND for plant in CLIENT_PLANTS.values())


@pytest.mark.parametrize("name", RUNS)
def test_a_planted_mistake_is_caught(name: str) -> None:
    """By the property that its row states."""
    assert Verdict.VIOLATED in verdicts(CLIENT_PLANTS[name])


@pytest.mark.parametrize("name", RUNS)
def test_sound_clients_violate_nothing_there(name: str) -> None:
    """Neither that property nor another."""
    for cluster, promise in RUNS[name](SOUND):
        assert cluster.violated(promise) == []
        stated = cluster.finding(CLIENT_PLANTS[name].violates.name, promise)
        assert stated.verdict is Verdict.HOLDS, stated.evidence


# --- all of them together ------------------------------------------------------------------


def test_shipped_clients_go_with_the_shipped_protocol() -> None:
    """0.7.2 alone; whoever came later has a log of another kind."""
    assert clients_of(KAFKA_07) is AS_SHIPPED
    assert all(clients_of(one) is SOUND for one in (DOCUMENTED, KAFKA_08, HARDENED))


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

    assert result.trace.of_kind("consumed")
    assert result.trace.of_kind("offset reset")


@pytest.mark.parametrize(
    ("variant", "clients", "committed"),
    [(KAFKA_07, AS_SHIPPED, 10 * 50), (HARDENED, SOUND, 10_000)],
    ids=["shipped", "sound"],
)
def test_who_commits_a_place_that_was_out_of_range(
    variant: Variant, clients: Clients, committed: int
) -> None:
    """As shipped the fetcher does, at once; else whoever commits the next time."""
    cluster = Cluster(variant=variant, clients=clients)
    cluster.write("clicks", 0, 0, 10)
    preset(cluster, 10_000)
    off = {"auto_commit_enable": False, "auto_offset_reset": "largest"}
    cluster.member("c0", {"clicks": 1}, **off)
    cluster.world.run(3000)

    assert cluster.handed_to("c0") == []
    assert cluster.offset("clicks", "0-0") == committed


def test_the_page_of_delivery_lists_every_plant() -> None:
    """With the property that it violates, in the order of the table."""
    page = (HOME / "docs/explanation/delivery.md").read_text()
    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| ")]

    listed = [(name.removeprefix("| "), what) for name, what in rows]
    expected = {(plant.name, plant.violates.name) for plant in CLIENT_PLANTS.values()}
    assert expected <= set(listed)
