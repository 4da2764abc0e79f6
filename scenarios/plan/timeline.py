"""Builds the actions of a timeline, and refuses entries that contradict one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from watchkeeper.model.plan.faults import VERBS, Action, Trigger
from watchkeeper.model.plan.plan import (
    BrokerPlan,
    ClusterPlan,
    ConsumerPlan,
    GroupPlan,
    process_of,
)
from watchkeeper.model.plan.roles import CONTROLLER, LEADER, PARTITION_LEADER, role_of
from watchkeeper.scenarios.plan.names import Names, entry_names
from watchkeeper.scenarios.schema.entries import entry_problems, options_of, verbs_of
from watchkeeper.scenarios.text.document import Document
from watchkeeper.scenarios.text.errors import Problem, ScenarioError
from watchkeeper.scenarios.text.units import duration_text

FOREVER = 1 << 62


def actions(
    document: Document,
    names: Names,
    clusters: tuple[ClusterPlan, ...],
    groups: tuple[GroupPlan, ...],
) -> tuple[Action, ...]:
    """The actions of a scenario; ScenarioError lists what is wrong with them."""
    entries = names.entries
    problems = [
        problem
        for at, entry in enumerate(entries)
        for problem in entry_problems(document, at, entry)
    ]
    if problems:
        raise ScenarioError(document.name, problems)
    for at, entry in enumerate(entries):
        problems.extend(entry_names(document, names, at, entry))
    if problems:
        raise ScenarioError(document.name, problems)
    found = tuple(_action(names, at, entry) for at, entry in enumerate(entries))
    problems.extend(_contradictions(document, names, found, clusters, groups))
    if problems:
        raise ScenarioError(document.name, problems)
    return found


def _action(names: Names, at: int, entry: Any) -> Action:
    verb = VERBS[verbs_of(entry)[0]]
    trigger = None
    if entry.on is not None:
        trigger = Trigger(entry.on.node, entry.on.purpose, entry.on.nth, entry.on.when)
    given = options_of(entry)
    if verb.name == "move_leader":  # leaders are broker ids, not names
        given["to"] = f"broker/{names.broker_ids[given['to']]}"
    options: Any = tuple(given.items())
    return Action(at, verb, getattr(entry, verb.name), entry.at, trigger, options)


# --- contradictions --------------------------------------------------------------------

NEEDS_RUNNING = frozenset(
    {
        *("crash", "crash_host", "leave", "pause", "abandon"),
        *("expire", "disconnect", "skew", "move", "lag"),
    }
)
NEEDS_PROGRAM = frozenset({"leave", "abandon"})
ENDS_PROCESS = frozenset({"crash", "crash_host", "leave"})
STARTS_PROCESS = frozenset({"start", "restart"})


def _contradictions(
    document: Document,
    names: Names,
    timeline: tuple[Action, ...],
    clusters: tuple[ClusterPlan, ...],
    groups: tuple[GroupPlan, ...],
) -> Iterator[Problem]:
    """Contradictions: two actions of a kind at one time, a crash of a process that is down."""
    starts: dict[str, int] = {}
    members: list[BrokerPlan | ConsumerPlan] = [
        *(broker for cluster in clusters for broker in cluster.brokers),
        *(consumer for group in groups for consumer in group.consumers),
    ]
    for member in members:
        starts[member.node] = FOREVER if member.starts_us is None else member.starts_us
    for process in names.processes:
        starts[process.name] = max(starts.get(member, 0) for member in process.members)
    timed = sorted(
        (action for action in timeline if action.at_us is not None),
        key=lambda action: (action.at_us or 0, action.number),
    )
    uncertain = {action.target for action in timeline if action.trigger is not None}
    uncertain |= {action.target for action in timeline if action.verb.name == "disk_full"}
    uncertain |= {action.trigger.node for action in timeline if action.trigger is not None}
    yield from _overlaps(document, timed)
    for node in dict.fromkeys(action.target for action in timed):
        shared = process_of(names.processes, node)
        if uncertain.isdisjoint((node, shared)) and role_of(node) is None:
            own = [action for action in timed if action.target in (node, shared)]
            for action, message in _lives(own, starts.get(node, 0)):
                if action.target == node:
                    yield document.problem(("timeline", action.number), message)


PASSED_ON = (LEADER, CONTROLLER, PARTITION_LEADER)
"""Roles that another process has after the fault: the same fault may strike that one."""


def _overlaps(document: Document, timed: list[Action]) -> Iterator[Problem]:
    last: dict[tuple[str, str], Action] = {}
    for action in timed:
        if not action.for_us or action.verb.kind != "fault":
            continue
        if role_of(action.target) in (
            LEADER,
            CONTROLLER,
            PARTITION_LEADER,
        ):  # the next one is another process
            continue
        key = (action.verb.name, action.target)
        before = last.get(key)
        if before is not None and (before.at_us or 0) + before.for_us > (action.at_us or 0):
            message = (
                f"begins at {duration_text(action.at_us or 0)}, while the same fault of "
                f"timeline[{before.number}] lasts until "
                f"{duration_text((before.at_us or 0) + before.for_us)}; let one end first"
            )
            yield document.problem(("timeline", action.number), message)
        last[key] = action


def _end_us(action: Action) -> int:
    return (action.at_us or 0) + action.for_us


def _lives(own: list[Action], starts_us: int) -> Iterator[tuple[Action, str]]:
    """Follow one process through its actions: a process that is down cannot crash, nor a running
    one start. Yield each action that makes no sense, and why."""
    runs_from = starts_us
    ended: Action | None = None
    paused_until = 0
    abandoned: Action | None = None
    for action in own:
        at = action.at_us or 0
        name = action.verb.name
        if abandoned is not None and abandoned.for_us and at >= _end_us(abandoned):
            ended, abandoned = abandoned, None
        runs = ended is None and at >= runs_from
        if name in NEEDS_RUNNING and not runs:
            why = (
                f"it ended by timeline[{ended.number}]"
                if ended is not None
                else "it has not started by then"
            )
            yield action, f"{action.target} does not run at that time: {why}"
        elif name in STARTS_PROCESS and runs:
            yield action, f"{action.target} runs already at that time"
        elif name in NEEDS_PROGRAM and abandoned is not None:
            message = f"the program of {action.target} ended by timeline[{abandoned.number}]"
            yield action, f"{message}; only its process and its session go on"
        elif name in ("disconnect", "expire", "leave", "abandon") and at < paused_until:
            message = f"{action.target} is paused until {duration_text(paused_until)}"
            yield action, message
        if name in ENDS_PROCESS:
            ended, abandoned = action, None
        elif name == "abandon":
            abandoned = action
        elif name in STARTS_PROCESS:
            ended = None
            runs_from = min(runs_from, at)
        elif name == "pause":
            paused_until = at + action.for_us
