"""What a run may do to a ZooKeeper that somebody else runs: only what was allowed by name.

None of the faults of a live run touches a server: members are our own processes, and cuts
and losses happen in our own proxy. But the server sees sessions expire and connections
break, and whoever watches over it may be woken by that. So they have to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from model.plan import ClusterPlan, Plan
from real.access import Access
from real.probing import granted_bounds_ms
from real.problems import EnvironmentProblem

TICKS_OF_SHORTEST = 2
"""The shortest session timeout is this many ticks, unless a server is told otherwise."""


def without_leave(plan: Plan, access: Access, allowed: Iterable[str]) -> list[str]:
    """The hosts whose sessions would meet faults though nobody has allowed it; sorted."""
    if not any(action.is_fault for action in plan.timeline):
        return []
    named = set(allowed)
    hosts = {address.rpartition(":")[0] for address in access.addresses if address not in named}
    return sorted(hosts - named)


def unknown_hosts(access: Access, allowed: Iterable[str]) -> list[str]:
    """What was allowed though it is no host of this ZooKeeper."""
    known = {address.rpartition(":")[0] for address in access.addresses} | set(access.addresses)
    return sorted(set(allowed) - known)


def fitted(plan: Plan, access: Access) -> Plan:
    """The same plan with the tick of the ZooKeeper that runs already.

    Raises EnvironmentProblem where it would grant another session timeout than asked for.
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
    return replace(plan, clusters=tuple(_with_tick(one, tick_us) for one in plan.clusters))


def _timeouts(plan: Plan) -> Iterable[tuple[str, int]]:
    for cluster in plan.clusters:
        if cluster.brokers:
            yield f"a broker of {cluster.name}", cluster.session_timeout_ms
    for _, consumer in plan.consumers():
        yield consumer.node, consumer.settings.session_timeout_ms


def _with_tick(cluster: ClusterPlan, tick_us: int) -> ClusterPlan:
    return replace(cluster, zookeeper=replace(cluster.zookeeper, tick_us=tick_us))
