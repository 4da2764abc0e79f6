"""Permissions of a run on an external ZooKeeper: faults only where the user has allowed them.

No fault of a live run touches a server: members are processes of the run, and cuts and losses
happen in its proxy. But the server sees sessions expire and connections break, which may alarm
its operators. So faults need an explicit permission for each host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.real.access import Access
from watchkeeper.real.client.sessions import granted_bounds_ms
from watchkeeper.real.errors import EnvironmentProblem

TICKS_OF_SHORTEST = 2
"""The shortest session timeout in ticks, unless a server is configured otherwise."""


def missing_permissions(plan: Plan, access: Access, allowed: Iterable[str]) -> list[str]:
    """The hosts whose sessions would be affected by faults without permission; sorted."""
    if not any(action.is_fault for action in plan.timeline):
        return []
    named = set(allowed)
    hosts = {address.rpartition(":")[0] for address in access.addresses if address not in named}
    return sorted(hosts - named)


def unknown_hosts(access: Access, allowed: Iterable[str]) -> list[str]:
    """The permissions that name no host of this ZooKeeper."""
    known = {address.rpartition(":")[0] for address in access.addresses} | set(access.addresses)
    return sorted(set(allowed) - known)


def fitted(plan: Plan, access: Access) -> Plan:
    """The same plan with the tick of the external ZooKeeper.

    Raises EnvironmentProblem if it does not grant the session timeouts of the plan.
    """
    try:
        shortest, longest = granted_bounds_ms(
            access.addresses, access.tls_context(), access.timeout_s
        )
    except OSError as error:
        raise EnvironmentProblem(
            f"no ZooKeeper answers at {access.hosts} ({error}); check the address, and that a "
            "majority of its servers runs"
        ) from None
    for who, timeout_ms in _timeouts(plan):
        if not shortest <= timeout_ms <= longest:
            raise EnvironmentProblem(
                f"{who} asks for a session timeout of {timeout_ms} ms, but the ZooKeeper at "
                f"{access.hosts} grants {shortest} to {longest} ms; change the scenario's, or "
                "the server's minSessionTimeout and maxSessionTimeout"
            )
    tick_us = shortest * 1000 // TICKS_OF_SHORTEST
    return replace(
        plan, clusters=tuple(_with_tick(cluster, tick_us) for cluster in plan.clusters)
    )


def _timeouts(plan: Plan) -> Iterable[tuple[str, int]]:
    for cluster in plan.clusters:
        if cluster.brokers:
            yield f"a broker of {cluster.name}", cluster.session_timeout_ms
    for _, consumer in plan.consumers():
        yield consumer.node, consumer.settings.session_timeout_ms


def _with_tick(cluster: ClusterPlan, tick_us: int) -> ClusterPlan:
    return replace(cluster, zookeeper=replace(cluster.zookeeper, tick_us=tick_us))
