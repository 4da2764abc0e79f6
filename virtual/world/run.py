"""Runs a test once, in a world of its own."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from watchkeeper.model.properties.verdicts import Finding, Property, Verdict
from watchkeeper.virtual.network.patches import PATCHES as NETWORK_PATCHES
from watchkeeper.virtual.threads.errors import Stuck, VirtualTimeError
from watchkeeper.virtual.threads.patches import install
from watchkeeper.virtual.threads.task import Policy, Task
from watchkeeper.virtual.threads.watchdog import Watchdog
from watchkeeper.virtual.world import kazoo_names, source_lines
from watchkeeper.virtual.world.faults import Fault, Strike
from watchkeeper.virtual.world.outcome import Outcome, Struck
from watchkeeper.virtual.world.world import World, WorldSettings

ASSERTIONS = Property("assertions", "always", "no assertion of the program fails")
STOPPED = Property("no thread computes for ever", "always", "the watchdog stopped no thread")
DEADLOCK = Property("no deadlock", "end", "no threads wait for each other's locks")
WATCHDOG_S = 5.0

Test = Callable[[World], object]
"""Prepares a world: starts processes, and says what has to hold."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test with everything that is the same in all of its runs."""

    name: str
    test: Test
    settings: WorldSettings
    faults: tuple[Fault, ...] = ()
    watchdog_s: float = WATCHDOG_S

    def until(self, until_s: float) -> Case:
        """The same test, with runs that end at this moment at the latest."""
        return replace(self, settings=replace(self.settings, until_s=until_s))


def prepare() -> None:
    """Replace the names that virtual time replaces; needed once, before the first world.

    Raises VirtualTimeError where gevent or eventlet have replaced them already.
    """
    refuse_other_schedulers()
    install(NETWORK_PATCHES)
    asyncio.get_event_loop_policy()  # it is made once in a process, under a lock
    kazoo_names.put()
    source_lines.put()


def refuse_other_schedulers() -> None:
    """Raise VirtualTimeError where another library decides which thread runs."""
    gevent = sys.modules.get("gevent.monkey")
    eventlet = sys.modules.get("eventlet.patcher")
    if gevent is not None and gevent.is_module_patched("threading"):
        name = "gevent"
    elif eventlet is not None and eventlet.is_monkey_patched("thread"):
        name = "eventlet"
    else:
        return
    raise VirtualTimeError(
        f"{name} has replaced threads in this process, and has a clock and an order of its own; "
        f"run the test without {name}'s monkey patches, on kazoo's default handler"
    )


def run_once(
    case: Case, policy: Policy, policy_name: str, *, seed: int, plan: tuple[Strike, ...] = ()
) -> Outcome:
    """Run a test with a seed, a policy and a plan of faults.

    Raises what the test's own function raises, and VirtualTimeError for a world that it
    prepares wrongly.
    """
    prepare()
    with garbage_kept():
        return _run(case, policy, policy_name, seed, plan)


def _run(
    case: Case, policy: Policy, policy_name: str, seed: int, plan: tuple[Strike, ...]
) -> Outcome:
    world = World(policy, seed=seed, settings=case.settings, plan=plan)
    try:
        _prepare_world(case, world)
        if not world.has_processes:
            raise VirtualTimeError(
                f"{case.name} starts no process; start one by world.process(name, function)"
            )
        with quiet_kazoo(), Watchdog(world.scheduler, limit_s=case.watchdog_s):
            world.run()
        return _outcome(case, world, policy_name, seed, plan)
    finally:
        world.tear_down()


def _prepare_world(case: Case, world: World) -> None:
    try:
        case.test(world)
    except VirtualTimeError:
        raise
    except Exception as error:
        raise VirtualTimeError(
            f"{case.name} fails while it prepares its world: {type(error).__name__}: {error}"
        ) from error


def _outcome(
    case: Case, world: World, policy_name: str, seed: int, plan: tuple[Strike, ...]
) -> Outcome:
    scheduler = world.scheduler
    return Outcome(
        test=case.name,
        seed=seed,
        policy=policy_name,
        findings=(*world.findings(), *_own_findings(world)),
        plan=plan,
        struck=tuple(
            Struck(blow.strike, blow.at_us, dict(sorted(blow.effects.items())))
            for blow in world.nemesis.blows
        ),
        schedule=scheduler.schedule,
        rows=world.zookeeper.record.rows,
        requests=world.nemesis.requests,
        turns=scheduler.turn,
        steps=scheduler.step,
        end_us=world.now_us,
        until_s=case.settings.until_s,
        deaths=tuple(_death(task, error) for task, error, _ in world.deaths),
        tracebacks=tuple(_traceback(error) for _, error, _ in world.deaths),
    )


def _own_findings(world: World) -> Iterator[Finding]:
    for task, error, at_us in world.deaths:
        if isinstance(error, Stuck):
            yield Finding(STOPPED, Verdict.VIOLATED, str(error), at_us)
        elif isinstance(error, VirtualTimeError | AssertionError):
            yield Finding(ASSERTIONS, Verdict.VIOLATED, _death(task, error), at_us)
    ring = world.deadlock()
    if ring:
        since_us = max(task.blocked_since_ns for task in ring) // 1000
        yield Finding(DEADLOCK, Verdict.VIOLATED, _ring_text(ring), since_us)


def _ring_text(ring: list[Task]) -> str:
    others = [*ring[1:], ring[0]]
    waits = [f"{one.name} for {other.name}" for one, other in zip(ring, others, strict=True)]
    return f"threads of {ring[0].process.name} wait for each other's locks: {', '.join(waits)}"


def _death(task: Task, error: BaseException) -> str:
    text = f"{task.name} of {task.process.name} ended by {type(error).__name__}: {error}"
    return text.rstrip(": ")


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, chain=False, limit=-8))


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Collect no garbage: a world that is still referred to would be searched in vain."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


@contextmanager
def quiet_kazoo() -> Iterator[None]:
    """Let kazoo log nothing: thousands of runs lose connections on purpose."""
    logger: Any = logging.getLogger("kazoo")
    before = logger.level, logger.disabled
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.level, logger.disabled = before
        logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]
