"""The target of an action: the process that it names, or that has the role that it names.

A role is resolved when the action strikes. An action without a target does nothing, and says
why: no process has the role then, or the process does not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.nemesis.world import Cluster, Server, World
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.roles import (
    CONTROLLER,
    LEADER,
    PARTITION_LEADER,
    Role,
    led_by,
    role_of,
)

STARTS = frozenset({"start", "restart"})
NEEDS_PROCESS = frozenset(
    {"crash", "crash_host", "leave", "pause", "abandon", "expire", "disconnect"}
)
"""Verbs that do nothing to a process that does not run."""


class NoTarget(Exception):
    """An action finds no target; the text says why."""


class Targets:
    """Finds the targets of the actions of one run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._struck: dict[str, list[str]] = {}
        """Role -> the processes that its actions have struck and not started again."""

    def aimed(self, effect: FaultEffect) -> Action:
        """Return an action with names in place of roles; its effect notes a missing target."""
        action = effect.action
        try:
            if role_of(action.target) is not None:
                effect.target = self._process_of(action)
                action = replace(action, target=effect.target)
            action = self._with_other_side(action)
            self._check_that_it_runs(action)
        except NoTarget as reason:
            effect.missed = str(reason)
        return action

    def _process_of(self, action: Action) -> str:
        struck = self._struck.setdefault(action.target, [])
        if action.verb.name in STARTS:
            if not struck:
                raise NoTarget(f"no earlier action has struck a {action.target}")
            return struck.pop()
        name = self._holder(action.target)
        struck.append(name)
        return name

    def _with_other_side(self, action: Action) -> Action:
        """Resolve the role on the other side of a partition."""
        other = action.option("from")
        if not isinstance(other, str) or role_of(other) is None:
            return action
        name = self._holder(other)
        options = tuple(
            (option, name if option == "from" else value) for option, value in action.options
        )
        return replace(action, options=options)

    def has_role(self, target: str, node: str) -> bool:
        """Return whether a process has a role now."""
        try:
            return self._holder(target) == node
        except NoTarget:
            return False

    def _holder(self, target: str) -> str:
        """Return the process that has a role now."""
        role = role_of(target)
        assert role is not None, "only a role has a holder"
        cluster = self._cluster_of(target)
        if role is CONTROLLER:
            return self._controller_of(cluster)
        if role is PARTITION_LEADER:
            return self._leader_of(cluster, Partition(*led_by(target)))
        servers = [
            (server.name, server.role if server.is_up else "down") for server in cluster.servers
        ]
        wanted = "leader" if role is LEADER else "follower"
        for name, has in servers:
            if has == wanted:
                return name
        raise NoTarget(_why_none(role, servers))

    def _controller_of(self, cluster: Cluster) -> str:
        """Return the broker that is the controller now, whether its process runs or not."""
        broker_id = cluster.controller_id
        if broker_id is None:
            raise NoTarget("no broker is the controller: there is no /controller")
        return self._broker_of(cluster, broker_id)

    def _leader_of(self, cluster: Cluster, partition: Partition) -> str:
        """Return the broker that leads a partition, as the registry says."""
        broker_id = cluster.leader_of(partition)
        if broker_id is None:
            raise NoTarget(f"no broker leads {partition}")
        return self._broker_of(cluster, broker_id)

    def _broker_of(self, cluster: Cluster, broker_id: int) -> str:
        named = [each.node for each in cluster.plan.brokers if each.broker_id == broker_id]
        if not named:
            raise NoTarget(f"no broker of the scenario has the id {broker_id}")
        running = [name for name in named if self.world.process(name) is not None]
        return (running or named)[0]

    def _cluster_of(self, target: str) -> Cluster:
        prefix = target.removesuffix(target.rpartition(":")[2])
        return next(
            cluster for cluster in self.world.clusters.values() if cluster.prefix == prefix
        )

    def _check_that_it_runs(self, action: Action) -> None:
        if action.verb.name not in NEEDS_PROCESS:
            return
        server = server_of(self.world, action.target)
        runs = self.world.process(action.target) is not None if server is None else server.is_up
        if not runs:
            raise NoTarget(f"{action.target} does not run")


def server_of(world: World, name: str) -> Server | None:
    """Return the server of that name; None if it is the name of a member."""
    for cluster in world.clusters.values():
        for server in cluster.servers:
            if server.name == name:
                return server
    return None


def _why_none(role: Role, servers: Sequence[tuple[str, str]]) -> str:
    """Return why no server has a role, with what each of them is."""
    now = ", ".join(f"{name} {_TEXT[has]}" for name, has in servers)
    what = role.name.rpartition("/")[2]
    return f"no server is the {what}: {now}" if now else "there are no servers to choose from"


_TEXT = {"leader": "leads", "follower": "follows", "none": "does neither", "down": "is down"}
