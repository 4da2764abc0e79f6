"""Undoes the circles of references in a world that has run, so that it is freed at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.cluster import Cluster
from sim.consuming import StreamFetcher

if TYPE_CHECKING:
    from sim.world import World


def take_apart(world: World) -> None:
    """Let go of everything that a world holds; it is of no use any more."""
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
            yield from (fetcher.connector.fetching, fetcher.connector, fetcher.threads)
        yield fetcher
    for process in world.producers.running.values():
        yield from (process.threads, process)
    yield from (world.producers, world)


def _parts_of_cluster(cluster: Cluster) -> Iterator[Any]:
    ensemble = cluster.ensemble
    yield from (cluster.logs, ensemble.sessions, ensemble.election, *ensemble.servers, ensemble)
    if cluster.sites is not None:
        for host in cluster.sites.hosts.values():
            if host.broker is not None:
                yield from (host.broker.threads, host.broker)
            yield from (host.storage.files, host.storage, host)
        yield cluster.sites
    yield cluster
