"""Builds the processes that several members share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from watchkeeper.model.plan.plan import (
    ClusterPlan,
    ConsumerPlan,
    GroupPlan,
    ProcessPlan,
    ProducerPlan,
)
from watchkeeper.scenarios.plan.context import Context
from watchkeeper.scenarios.text.document import Path
from watchkeeper.scenarios.text.errors import expected

FEWEST = 2
"""Members of a process; one alone has a process of its own anyway."""


def processes(
    context: Context,
    clusters: tuple[ClusterPlan, ...],
    groups: tuple[GroupPlan, ...],
    producers: tuple[ProducerPlan, ...],
) -> tuple[ProcessPlan, ...]:
    """Build the processes that the scenario names."""
    starts: dict[str, int | None] = {producer.node: 0 for producer in producers}
    starts |= {member.node: member.starts_us for group in groups for member in group.consumers}
    starts |= {broker.node: broker.starts_us for each in clusters for broker in each.brokers}
    first: dict[str, str] = {}
    for name, members in context.scenario.processes.items():
        path: Path = ("processes", name)
        if name in (*context.scenario.groups, *context.scenario.producers):
            context.problem(path, "is the name of a group or of producers; choose another name")
        if len(set(members)) < FEWEST:
            message = "needs two members or more: a member alone has a process of its own"
            context.problem(path, message)
        for at, member in enumerate(members):
            if member not in starts:
                context.problem((*path, at), expected(member, "a member", list(starts)))
            elif member in first:
                message = f"{member} runs in {first[member]} already; expected one process"
                context.problem((*path, at), message)
            elif starts[member] is None:
                message = f"{member} never starts by itself; a member starts with its process"
                context.problem((*path, at), message)
            first.setdefault(member, name)
    return tuple(
        ProcessPlan(name, tuple(members)) for name, members in context.scenario.processes.items()
    )


def on_one_host(
    context: Context,
    clusters: tuple[ClusterPlan, ...],
    groups: tuple[GroupPlan, ...],
    shared: tuple[ProcessPlan, ...],
) -> tuple[GroupPlan, ...]:
    """Return the groups with the consumers of each process on the host of that process.

    It is the host of its broker, or the one that its consumers name, or one of its own.
    """
    brokers = {broker.node: broker.host for each in clusters for broker in each.brokers}
    written = dict(_written_hosts(context))
    host_of: dict[str, str] = {}
    for process in shared:
        named = [brokers[member] for member in process.members if member in brokers]
        named += [written[member] for member in process.members if member in written]
        host = named[0] if named else f"{process.name}.example"
        for at, member in enumerate(process.members):
            own = brokers.get(member, written.get(member, host))
            if own != host:
                message = f"{member} runs on {own}, and {process.name} on {host}"
                context.problem(
                    ("processes", process.name, at), f"{message}; a process has one host"
                )
            host_of[member] = host
    return tuple(
        replace(group, consumers=tuple(_moved(member, host_of) for member in group.consumers))
        for group in groups
    )


def _written_hosts(context: Context) -> Iterator[tuple[str, str]]:
    """Consumer -> its host, where the file says so."""
    for name, group in context.scenario.groups.items():
        if isinstance(group.consumers, list):
            for at, consumer in enumerate(group.consumers):
                if consumer.host is not None:
                    yield f"{name}/{at}", consumer.host


def _moved(member: ConsumerPlan, host_of: dict[str, str]) -> ConsumerPlan:
    host = host_of.get(member.node)
    return member if host is None else replace(member, host=host)
