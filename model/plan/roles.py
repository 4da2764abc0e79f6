"""Roles: targets of a timeline that say what a process is, and not which one it is.

    - {at: 10s, crash: zookeeper/leader}

A role is resolved when its action strikes, since nothing is known of an election before. The
trace and the report name the process that had the role. `ROLES` is the table of all roles; the
world of a run says who has one (`watchkeeper.model.nemesis.world.Server.role`).
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.plan.faults import Target, Verb


class Role(NamedTuple):
    """One row of the table."""

    name: str
    target: Target
    """The kind of process that has it."""
    about: str
    refused: tuple[tuple[str, str], ...] = ()
    """Verbs that make no sense for it, and why."""


LEADER = Role(
    "zookeeper/leader",
    "server",
    "the server that leads the ensemble",
    (("lag", "a leader cannot fall behind; name a follower"),),
)
FOLLOWER = Role("zookeeper/follower", "server", "the first server that follows the leader")

CONTROLLER = Role(
    "controller",
    "broker",
    "the broker that /controller names, in a cluster with `leaders: controller`",
    (("start", "a controller runs already; name a broker, or restart the one that was struck"),),
)

ROLES = {role.name: role for role in (LEADER, FOLLOWER, CONTROLLER)}
"""Every role, by the name of its target; with several clusters `main:zookeeper/leader`."""


def roles_for(verb: Verb) -> list[Role]:
    """Return the roles that a verb may name in place of a process."""
    return [
        role
        for role in ROLES.values()
        if role.target in verb.targets and verb.name not in dict(role.refused)
    ]


def role_of(target: str) -> Role | None:
    """Return the role that a target names; None for the name of a process or anything else."""
    return ROLES.get(target.rpartition(":")[2])
