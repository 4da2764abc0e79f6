"""Live runs of a plan against a real ZooKeeper; a sentence if one is not possible."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from watchkeeper.api import folder
from watchkeeper.api.simulate import versions
from watchkeeper.console.credentials import NONE, Credentials
from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.extras import needing
from watchkeeper.console.zookeeper import hosts_in, implementation_of, in_words
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios.text.units import duration_text
from watchkeeper.sim.world import Simulated

if TYPE_CHECKING:
    from watchkeeper.real.access import Access


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a live run, and its permissions there."""

    zookeeper: str | None = None
    """HOSTS[/chroot] of a ZooKeeper that runs already, or the word for one that is started."""
    credentials: Credentials = NONE
    allowed: tuple[str, ...] = ()
    """Hosts whose sessions may meet faults."""
    abort_file: Path | None = None

    @property
    def hosts(self) -> str | None:
        """The hosts of a ZooKeeper that runs already; None to start one."""
        return hosts_in(self.zookeeper)

    @property
    def in_words(self) -> str:
        """Which ZooKeeper the run uses."""
        return in_words(self.hosts or implementation_of(self.zookeeper))

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command line that say the same."""
        if self.zookeeper is None:
            return ()
        allowed = [f"--allow-faults-on {shlex.quote(host)}" for host in self.allowed]
        return (f"--zookeeper {shlex.quote(self.zookeeper)}", *allowed, *self.credentials.options)


HERE = Where()


def where(
    world: str,
    credentials: Credentials,
    *,
    zookeeper: str | None,
    allow_faults_on: tuple[str, ...],
    abort_file: Path | None,
) -> Where:
    """Where the command line wants a run to take place; Stop where it contradicts itself."""
    found = Where(zookeeper, credentials, allow_faults_on, abort_file)
    if world == "sim" and found != HERE:
        raise Stop(
            USAGE,
            "--zookeeper, --allow-faults-on, --abort-file, --auth and --tls-... are for live "
            "runs; add --world live",
        )
    if found.hosts is None and (allow_faults_on or credentials != NONE):
        raise Stop(USAGE, "--allow-faults-on, --auth and --tls-... go with --zookeeper HOSTS")
    return found


def abortable(where: Where, home: Path) -> Where:
    """Return the place with an abort file; the abort file of an earlier run is removed."""
    if where.abort_file is None:
        folder.forget_abort(home)
        return replace(where, abort_file=home / folder.ABORT)
    if not where.abort_file.name or not where.abort_file.parent.is_dir():
        raise Stop(USAGE, f"--abort-file {where.abort_file}: it could not be created there")
    if where.abort_file.exists():
        raise Stop(USAGE, f"{where.abort_file} is there, which ends a live run; remove it first")
    return where


def run_plan_live(
    plan: Plan,
    seed: int,
    tell: Callable[[int, int], None],
    where: Where = HERE,
    *,
    waits: Callable[[str], None] = lambda what: None,
) -> tuple[Plan, Simulated]:
    """Run a plan live; the plan as it was run, and what it left.

    `tell` receives the time of the run and its end in µs, `waits` what the run waits for before
    and after. Stop where this machine, or no machine, can do what it states.
    """
    with needing("a live run"):
        from watchkeeper.real.world.capabilities import lacking
        from watchkeeper.real.world.permissions import fitted
        from watchkeeper.real.world.run import live
        from watchkeeper.real.zookeepers.implementation import Implementation
    from watchkeeper.real.errors import EnvironmentProblem

    started = None if where.hosts is not None else implementation_of(where.zookeeper)
    problems = list(lacking(plan, started))
    if problems:
        raise Stop(USAGE, "\n".join(f"{plan.name}: {problem}" for problem in problems))
    zookeeper = started or where.credentials.access(where.hosts or "")
    try:
        if not isinstance(zookeeper, Implementation):
            _check_leave(plan, where, zookeeper)
            plan = fitted(plan, zookeeper)
            _print_faults(plan, where)
        done = live(
            plan,
            seed,
            zookeeper=zookeeper,
            abort_file=where.abort_file,
            versions=versions(),
            progress=tell,
            waits=waits,
        )
    except EnvironmentProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    return plan, Simulated(done.trace, done.effects, done.operations)


def next_in_words(plan: Plan, now_us: int) -> str:
    """Return the next thing that a live run waits for at a moment of it."""
    to_come = [action for action in plan.timeline if (action.at_us or 0) > now_us]
    following = min(to_come, key=lambda action: action.at_us or 0, default=None)
    if following is None:
        return "the end of the time to settle"
    return f"{following.label} at {duration_text(following.at_us or 0)}"


def _check_leave(plan: Plan, where: Where, access: Access) -> None:
    """Refuse faults that the user has not allowed."""
    from watchkeeper.real.world.permissions import missing_permissions, unknown_hosts

    for host in unknown_hosts(access, where.allowed):
        raise Stop(USAGE, f"--allow-faults-on {host}: {where.hosts} has no such host")
    forbidden = missing_permissions(plan, access, where.allowed)
    if forbidden:
        options = " ".join(f"--allow-faults-on {host}" for host in forbidden)
        raise Stop(
            USAGE,
            f"{plan.name} has faults, and {', '.join(forbidden)} was not started by this run: "
            "sessions there would expire and connections break (no server would be touched); "
            f"if that is what you want, add {options}",
        )


def _print_faults(plan: Plan, where: Where) -> None:
    for line in plan_lines(plan, where):
        print(line, file=sys.stderr)


def plan_lines(plan: Plan, where: Where) -> list[str]:
    """Return a line for each fault, and how to stop them; no line without faults."""
    faults = [action for action in plan.timeline if action.is_fault]
    if not faults:
        return []
    lines = [f"{plan.name} will do this to its own members' sessions at {where.hosts}:"]
    for action in faults:
        trigger = action.trigger
        when = (
            duration_text(action.at_us or 0)
            if trigger is None
            else f"{trigger.when} {trigger.node} asks for its {trigger.purpose} no. {trigger.nth}"
        )
        lasts = f" for {duration_text(action.for_us)}" if action.for_us else ""
        lines.append(f"  {when:>8}  {action.label}{lasts}")
    if where.abort_file is not None:
        lines.append(f"  create {where.abort_file} to stop at once")
    return lines
