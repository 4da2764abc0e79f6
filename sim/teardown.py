"""Breaks the reference cycles of a world that has run, so that it is freed at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from watchkeeper.sim.brokers.cluster import Cluster
from watchkeeper.sim.brokers.consumer_process import StreamFetcher

if TYPE_CHECKING:
    from watchkeeper.sim.world import World


def take_apart(world: World) -> None:
    """Clear every part of a world; it is of no use any more."""
    for part in list(_parts(world)):
        part.__dict__.clear()


def _parts(world: World) -> Iterator[Any]:
    yield from (world.kernel, world.network, world.nemesis, world.calls)
    for cluster in world.clusters.values():
        yield from _parts_of_cluster(cluster)
    for name, node in world.nodes.items():
        yield from (world.drivers[name], node)
        if node.client is not None:
            yield node.client
    for fetcher in world.fetchers.values():
        if isinstance(fetcher, StreamFetcher):
            yield from (fetcher.connector.fetcher, fetcher.connector, fetcher.tasks)
        yield fetcher
    for process in world.producers.running.values():
        yield from (process.tasks, process)
    yield from (world.producers, world)


def _parts_of_cluster(cluster: Cluster) -> Iterator[Any]:
    ensemble = cluster.ensemble
    yield from (cluster.logs, ensemble.sessions, ensemble.election, *ensemble.servers, ensemble)
    if cluster.hosts is not None:
        for host in cluster.hosts.by_node.values():
            if host.broker is not None:
                yield from (host.broker.tasks, host.broker)
            yield from (host.storage.files, host.storage, host)
        yield cluster.hosts
    yield cluster
