"""Roles: targets of a timeline that say what a process is, and not which one it is.

    - {at: 10s, crash: zookeeper/leader}

A role is resolved when its action strikes, since nothing is known of an election before. The
trace and the report name the process that had the role. `ROLES` is the table of all roles; the
world of a run says who has one (`watchkeeper.model.nemesis.world.Server.role`).
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.plan.faults import Target, Verb

LEADS = "leader of "


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

PARTITION_LEADER = Role(
    "leader of",
    "broker",
    "with a topic and a partition behind it, such as `leader of clicks/0`: the broker that leads "
    "in the registry, in a cluster with `leaders: controller`",
    CONTROLLER.refused,
)

ROLES = {role.name: role for role in (LEADER, FOLLOWER, CONTROLLER, PARTITION_LEADER)}
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
    name = target.rpartition(":")[2]
    return PARTITION_LEADER if name.startswith(LEADS) else ROLES.get(name)


def led_by(target: str) -> tuple[str, str]:
    """Return the topic and the partition in a `leader of`; empty where they are missing."""
    topic, _, partition = target.rpartition(":")[2].removeprefix(LEADS).rpartition("/")
    return topic, partition
