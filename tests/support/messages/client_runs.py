"""Runs of simulated clients, one for each mistake that is put into them.

A mistake that needs one order of threads has several, each with an order of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.support.messages.cluster import App, Cluster, sends, slowly
from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.clients.compositions.kafka_07 import ClientSet
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import ConsumerTimeout
from watchkeeper.model.clients.producer.producer import Producer
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee

Run = Callable[[ClientSet], Iterator[tuple[Cluster, DeliveryGuarantee]]]
"""Runs of one mutant, each with its delivery guarantee."""

ONCE = DeliveryGuarantee("exactly once", ("clicks",), most_refused=0)
SENT = DeliveryGuarantee("at least once", ("clicks",))


def run_of(
    cluster: Cluster, guarantee: DeliveryGuarantee = ONCE
) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A single run."""
    yield cluster, guarantee


# --- producers -----------------------------------------------------------------------------


def closes_while_it_sends(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """One task of the application sends, another one closes the producer."""
    for seed in range(40):
        cluster = Cluster(clients=clients, seed=seed)
        process, producer = cluster.producer({"producer.type": "async", "queue.time": 50})

        async def application(producer: Producer = producer) -> None:
            await sends(producer, [None] * 60, pause_ms=1)

        async def closer(producer: Producer = producer) -> None:
            await sleep(30)
            await producer.close()

        process.start(application())
        process.start(closer())
        cluster.world.run(3000)
        yield cluster, SENT


def trickles(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A message every 100 ms, and a batch every 500 ms."""
    cluster = Cluster(clients=clients)
    process, producer = cluster.producer({"producer.type": "async", "queue.time": 500})

    async def application() -> None:
        await sends(producer, [None] * 100, pause_ms=100)
        await producer.close()

    process.start(application())
    cluster.world.run(20_000)
    return run_of(cluster)


def closes_with_a_part_of_a_batch(
    clients: ClientSet,
) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """Twelve messages in batches of five."""
    cluster = Cluster(clients=clients)
    process, producer = cluster.producer({"producer.type": "async", "batch.size": 5})

    async def application() -> None:
        await sends(producer, [None] * 12)
        await producer.close()

    process.start(application())
    cluster.world.run(10_000)
    return run_of(cluster)


def sends_with_keys(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A hundred keys, some with a negative hash."""
    cluster = Cluster(clients=clients, topics={"clicks": 3})
    process, producer = cluster.producer({})
    process.start(sends(producer, [f"a-longer-key-{number}" for number in range(100)]))
    cluster.world.run(10_000)
    return run_of(cluster)


def broker_moves(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A broker dies and comes back at another address; nothing is sent meanwhile."""
    cluster = Cluster(clients=clients)
    process, producer = cluster.producer({})

    async def application() -> None:
        await sends(producer, ["a"] * 5)
        await sleep(5000)
        await sends(producer, ["a"] * 5, first=5)

    process.start(application())
    cluster.world.run(1000)
    was = cluster.kill_broker(0)
    cluster.world.run(1000)
    cluster.start_broker(0, host="elsewhere", was=was)
    cluster.world.run(10_000)
    return run_of(cluster)


# --- consumers -----------------------------------------------------------------------------


def joins_a_full_queue(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A slow application, whose queue is full when another member joins and leaves."""
    cluster = Cluster(clients=clients, topics={"clicks": 2})
    for index in range(2):
        cluster.write("clicks", 0, index, 40)
    cluster.member("c1", {"clicks": 1}, slowly(50), fetch_size=250, queuedchunks_max=2)
    cluster.world.run(900)
    cluster.member("c0", {"clicks": 1}, slowly(10), fetch_size=250)
    cluster.world.run(1000)
    cluster.stop("c0")
    cluster.world.run(20_000)
    return run_of(cluster)


def one_message_is_large(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """One message of a partition is larger than the fetch size."""
    cluster = Cluster(clients=clients)
    for size in (20, 20, 200, 20):
        cluster.write("clicks", 0, 0, 1, size)

    async def gives_up(connector: Connector, stream: Stream) -> None:
        await telling_once(stream)
        await connector.shutdown()

    cluster.member("c0", {"clicks": 1}, gives_up, fetch_size=100)
    cluster.world.run(20_000)
    return run_of(cluster)


async def telling_once(stream: Stream) -> None:
    """Read until an error."""
    try:
        async for _ in stream:
            pass
    except LogError:
        return


def filters_with_two_streams(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """Four partitions for two streams of a filter."""
    cluster = Cluster(clients=clients, topics={"clicks": 4})
    for index in range(4):
        cluster.write("clicks", 0, index, 10)
    cluster.member("c0", "cl.*", streams=2)
    cluster.world.run(20_000)
    return run_of(cluster)


def broker_is_away_for_a_moment(
    clients: ClientSet,
) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A broker is away for a moment; its session survives, so no member rebalances."""
    cluster = Cluster(clients=clients)
    cluster.member("c0", {"clicks": 1})
    cluster.world.run(1000)
    was = cluster.world.processes["b0"]
    cluster.world.kill(was)
    cluster.world.run(1500)
    cluster.start_broker(0, was=was)
    cluster.world.run(500)
    cluster.write("clicks", 0, 0, 10)
    cluster.world.run(20_000)
    return run_of(cluster)


def commits_before_it_knows(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """The broker does not answer before the first commit of the application."""
    cluster = Cluster(clients=clients)
    cluster.write("clicks", 0, 0, 10)
    listens = cluster.world.listening.pop("b0:9092")

    async def application(connector: Connector, stream: Stream) -> None:
        while not stream.is_over:
            try:
                await stream.next()
            except ConsumerTimeout:
                await connector.commit_offsets(timeout_ms=1000)

    cluster.member("c0", {"clicks": 1}, application, consumer_timeout_ms=300)
    cluster.world.run(3000)
    cluster.world.listening["b0:9092"] = listens
    cluster.world.run(5000)
    return run_of(cluster)


def joins_while_another_reads(clients: ClientSet) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """A message every millisecond, while a member joins and takes over a partition."""
    for seed in range(12):
        cluster = Cluster(clients=clients, seed=seed, topics={"clicks": 2})
        for index in range(2):
            cluster.write("clicks", 0, index, 150)
        cluster.member("c1", {"clicks": 1}, slowly(1), fetch_size=500)
        cluster.world.run(100 + seed)
        cluster.member("c0", {"clicks": 1}, slowly(1))
        cluster.world.run(2000)
        yield cluster, ONCE


def commits_while_it_hands_over(
    clients: ClientSet,
) -> Iterator[tuple[Cluster, DeliveryGuarantee]]:
    """Many positions are committed while another member takes over half of them and commits."""
    cluster = Cluster(clients=clients, topics={"clicks": 80})
    for index in range(80):
        cluster.write("clicks", 0, index, 10)

    def commits_after(count: int) -> App:
        """Commit after a number of messages that take a millisecond each, and once more."""

        async def application(connector: Connector, stream: Stream) -> None:
            for handled in range(1_000):
                if handled in (count, 2 * count):
                    await connector.commit_offsets()
                if await stream.next() is None:
                    return
                await sleep(1)

        return application

    quiet = {"auto_commit_enable": False, "fetch_size": 100}
    cluster.member("a", {"clicks": 1}, commits_after(15), **quiet)
    cluster.world.run(120)
    cluster.member("b", {"clicks": 1}, commits_after(10), **quiet)
    cluster.world.run(2000)
    return run_of(cluster, SENT)


RUNS: dict[str, Run] = {
    "kafka-116-marker-first": closes_while_it_sends,
    "kafka-138-waits-longer": trickles,
    "kafka-567-last-batch": closes_with_a_part_of_a_batch,
    "negative-hash": sends_with_keys,
    "dead-pool-entry": broker_moves,
    "kafka-154-dropped-chunk": joins_a_full_queue,
    "kafka-160-too-large": one_message_is_large,
    "kafka-550-last-queue": filters_with_two_streams,
    "fetcher-ends": broker_is_away_for_a_moment,
    "minus-one": commits_before_it_knows,
    "prefetched-message": joins_while_another_reads,
    "commit-beside": commits_while_it_hands_over,
}
