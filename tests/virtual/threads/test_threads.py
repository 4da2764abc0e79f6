"""What `threading`, queues and executors make does the same in virtual time and outside of it."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.virtual_time import Machine, in_virtual_time
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.scheduler import Scheduler

MADE_EARLY = threading.Lock()
"""A lock at the top level of a module, made before any world."""


def lock_states() -> list[Any]:
    """A lock that is taken, refused, given back and taken with a timeout."""
    lock = threading.Lock()
    found = [lock.acquire(), lock.acquire(False), lock.locked(), lock.acquire(timeout=0.01)]
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()
    with pytest.raises(ValueError, match="timeout"):
        lock.acquire(False, 1)
    with lock:
        found.append(lock.locked())
    return [*found, lock.locked()]


def reentrant_lock() -> list[Any]:
    """A lock that its holder takes twice, and no other thread in between."""
    lock, found = threading.RLock(), []
    with lock, lock:
        other = threading.Thread(target=lambda: found.append(lock.acquire(False)))
        other.start()
        other.join()
    with pytest.raises(RuntimeError):
        lock.release()
    return found


def condition_and_event() -> list[Any]:
    """Waiting, notifying, and a timeout of each."""
    condition, event, found = threading.Condition(), threading.Event(), []

    def waiter() -> None:
        with condition:
            found.append(condition.wait_for(lambda: len(found) > 0, timeout=5))
        event.set()

    thread = threading.Thread(target=waiter)
    thread.start()
    with condition:
        found.append("changed")
        condition.notify_all()
    found.append(event.wait(5))
    thread.join()
    with condition:
        found.append(condition.wait(0.01))
    return [*found, threading.Event().wait(0.01)]


def semaphore_and_barrier() -> list[Any]:
    """At most two at once, and three that meet."""
    semaphore, barrier = threading.BoundedSemaphore(2), threading.Barrier(3)
    lock, is_full = threading.Lock(), threading.Event()
    inside, most = [0], [0]

    def count(number: int) -> None:
        with lock:
            inside[0] += number
            most[0] = max(most[0], inside[0])
            if inside[0] == 2:
                is_full.set()

    def work() -> None:
        with semaphore:
            count(1)
            is_full.wait()  # for the other one, however long a busy machine keeps it
            time.sleep(0.002)
            count(-1)
        barrier.wait()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [most[0], [thread.is_alive() for thread in threads]]


def queues() -> list[Any]:
    """Each class of queue hands over what was put, and raises at its bounds."""
    found: list[Any] = []
    for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue):
        waiting: Any = kind()

        def put(waiting: Any = waiting) -> None:
            for each in (2, 3, 1):
                waiting.put(each)

        thread = threading.Thread(target=put)
        thread.start()
        thread.join()
        found.append([waiting.get(timeout=5) for _ in range(3)])
        with pytest.raises(queue.Empty):
            waiting.get(timeout=0.01)
        with pytest.raises(queue.Empty):
            waiting.get_nowait()
    bounded: Any = queue.Queue(1)
    bounded.put(1)
    with pytest.raises(queue.Full):
        bounded.put(2, timeout=0.01)
    return found


def executor() -> list[Any]:
    """An executor returns results in order and raises what its calls raise."""
    with ThreadPoolExecutor(2) as pool:
        failed = pool.submit(lambda: 1 // 0)
        found = list(pool.map(lambda each: each * 2, range(5)))
    return [found, type(failed.exception()).__name__]


def thread_values() -> list[Any]:
    """Thread-local values, of `local` itself and of a class that derives from it."""

    class Counted(threading.local):
        def __init__(self, start: int) -> None:
            self.value = start

    plain, counted, found = threading.local(), Counted(7), []
    plain.value = "main"
    counted.value += 1

    def other() -> None:
        found.extend([hasattr(plain, "value"), counted.value])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    with pytest.raises(TypeError):
        threading.local(1)
    return [*found, plain.value, counted.value]


def names_and_numbers() -> list[Any]:
    """Threads know themselves, their name and whether they are the main one."""
    found: list[Any] = []

    class Named(threading.Thread):
        def run(self) -> None:
            found.append(threading.current_thread() is self)
            found.append(threading.get_ident() == self.ident)
            found.append(self in threading.enumerate())

    thread = Named(name="worker", daemon=True)
    found.append(thread.is_alive())
    thread.start()
    thread.join(5)
    found.append(thread.is_alive())
    with pytest.raises(RuntimeError):
        thread.start()
    main = threading.main_thread()
    return [*found, thread.name, main is threading.current_thread(), main.name]


def timer() -> list[Any]:
    """A timer calls, unless it is cancelled."""
    called: list[str] = []
    kept = threading.Timer(0.01, called.append, ["kept"])
    cancelled = threading.Timer(0.01, called.append, ["cancelled"])
    for each in (kept, cancelled):
        each.start()
    cancelled.cancel()
    for each in (kept, cancelled):
        each.join()
    return called


def context_and_log() -> list[Any]:
    """Context variables are a thread's own, and logging takes its locks."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("v", default="unset")
    variable.set("main")
    found: list[str] = []
    logger = logging.getLogger("tests.virtual")
    logger.addHandler(logging.NullHandler())

    def other() -> None:
        logger.warning("a warning")
        found.append(variable.get())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return [*found, variable.get()]


def loops() -> list[Any]:
    """Two event loops in two threads, with sleeps, tasks and a call from another thread."""
    found: dict[str, Any] = {}

    async def work(name: str) -> str:
        loop = asyncio.get_running_loop()
        later = loop.run_in_executor(None, lambda: name.upper())
        await asyncio.gather(*(asyncio.sleep(0.001 * each) for each in range(3)))
        assert asyncio.get_running_loop() is loop
        return await later

    def run(name: str) -> None:
        found[name] = asyncio.run(work(name))

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found.items())


SAME = (
    *(lock_states, reentrant_lock, condition_and_event, semaphore_and_barrier, queues),
    *(executor, thread_values, names_and_numbers, timer, context_and_log, loops),
)


@pytest.mark.parametrize("program", SAME, ids=lambda program: program.__name__)
def test_a_program_has_one_result_in_both_kinds_of_time(program: Callable[[], Any]) -> None:
    """Virtual threads, under several schedules, do what real ones do."""
    real = program()

    assert in_virtual_time(program) == real
    for seed in range(10):
        assert in_virtual_time(program, policy=RandomPolicy(seed), seed=seed) == real


def test_the_names_are_the_originals_again_outside_of_a_world() -> None:
    """After a run, threads are real ones: two of them sleep at once, by the wall clock."""
    in_virtual_time(lambda: None)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(threading.get_ident())) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(ident < 1 << 63 for ident in found)
    assert all(thread.native_id != thread.ident for thread in threads)


def test_a_lock_made_before_the_world_is_virtual_within_it() -> None:
    """A lock of a module that two threads contend for does not block the process."""

    def contend() -> list[str]:
        order: list[str] = []

        def hold(name: str) -> None:
            with MADE_EARLY:
                order.append(name)
                time.sleep(1)
                order.append(name)

        threads = [threading.Thread(target=hold, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return order

    assert in_virtual_time(contend) in (list("aabb"), list("bbaa"))
    assert not MADE_EARLY.locked()


def test_a_crash_runs_no_finally() -> None:
    """A process that crashes releases nothing, and its threads have no further turn."""
    machine, ends = Machine(), []

    def work() -> None:
        try:
            time.sleep(100)
        finally:
            ends.append(machine.scheduler.is_torn_down)

    machine.process("victim", work)
    victim = machine.scheduler.processes[0]
    machine.scheduler.call_at(10**9, lambda: machine.scheduler.crash(victim))
    machine.scheduler.run(20 * 10**9)
    assert ends == []
    assert not victim.is_alive
    machine.scheduler.tear_down()
    assert ends == [True]


def test_nothing_is_left_after_a_run() -> None:
    """Threads that never end, and one that swallows everything, leave no trace in `threading`."""
    before = dict(threading._active)  # type: ignore[attr-defined]

    def stubborn() -> None:
        for _ in range(5):
            try:
                threading.Event().wait()
            except BaseException:
                continue

    def main() -> None:
        threading.Thread(target=stubborn).start()
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    machine = Machine()
    machine.process("main", main)
    machine.run(until_s=5)

    assert dict(threading._active) == before  # type: ignore[attr-defined]


def test_a_pause_lets_nothing_run() -> None:
    """A process that stands still runs nothing, and goes on where it was."""
    machine, ticks = Machine(), []

    def tick() -> None:
        for _ in range(10):
            ticks.append(round(machine.scheduler.now_ns / 1e9))
            time.sleep(1)

    machine.process("main", tick)
    process = machine.scheduler.processes[0]
    machine.scheduler.call_at(int(2.5e9), lambda: machine.scheduler.pause(process))
    machine.scheduler.call_at(int(7.5e9), lambda: machine.scheduler.resume(process))
    machine.run()

    assert ticks == [0, 1, 2, 8, 9, 10, 11, 12, 13, 14]


def test_atexit_is_for_processes_that_return() -> None:
    """What was registered is called in reverse order, at the end of its own process."""
    called: list[str] = []

    def main() -> None:
        atexit.register(called.append, "first")
        atexit.register(called.append, "second")
        atexit.register(called.clear)
        atexit.unregister(called.clear)

    in_virtual_time(main)

    assert called == ["second", "first"]


def turns_of(seed: int) -> list[tuple[int, str]]:
    """Who had which turn, in a program with contention."""
    machine, turns = Machine(RandomPolicy(seed), seed=seed), []
    scheduler: Scheduler = machine.scheduler
    scheduler.after_turn = lambda task: turns.append((scheduler.now_ns, task.name))
    machine.process("main", semaphore_and_barrier)
    machine.process("other", queues)
    machine.run()
    return turns


def test_a_seed_is_one_schedule() -> None:
    """The same seed has the same turns at the same moments; another seed has others."""
    assert turns_of(3) == turns_of(3)
    assert turns_of(3) != turns_of(4)


def test_threads_that_are_unwound_say_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A pool whose workers wait at the end of a run would log each of them, with its stack."""
    pools: list[ThreadPoolExecutor] = []

    def main() -> None:
        pools.append(ThreadPoolExecutor(4))
        for _ in range(4):
            pools[0].submit(time.sleep, 0.1)
        queue.Queue().get()

    machine = Machine()
    machine.process("main", main)
    machine.run(until_s=10)
    pools.clear()

    assert capfd.readouterr().err == ""
    assert caplog.records == []
    logging.getLogger("concurrent.futures").critical("heard again")
    assert [record.message for record in caplog.records] == ["heard again"]


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
@pytest.mark.parametrize("is_inside", [True, False])
def test_a_condition_does_with_each_lock_what_the_library_does(
    make: Callable[[], Any], is_inside: bool
) -> None:
    """Who owns it, what may be notified, and what refuses: within a world and outside."""

    def found() -> list[Any]:
        lock = make()
        condition: Any = threading.Condition(lock)
        said: list[Any] = [condition._is_owned()]
        with condition:
            said += [condition._is_owned(), not make().locked()]
            condition.notify_all()
            said.append(condition.wait(timeout=0))
        said.append(condition._is_owned())
        for call in (condition.notify_all, condition.notify, condition.wait, condition.release):
            try:
                call()
            except RuntimeError as error:
                said.append(str(error))
        return said

    wanted = ["cannot notify on un-acquired lock"] * 2 + ["cannot wait on un-acquired lock"]
    said: Any = in_virtual_time(found) if is_inside else found()
    assert said[:8] == [False, True, True, False, False, *wanted]
    assert "lock" in said[8]


def test_a_condition_takes_a_lock_of_another_kind() -> None:
    """A lock that the program has written is entered, left and asked by its own methods."""

    class Own:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def acquire(self, *arguments: object) -> bool:
            self.calls.append("acquire")
            return arguments != (False,)

        def release(self) -> None:
            self.calls.append("release")

        def __enter__(self) -> bool:
            return self.acquire()

        def __exit__(self, *arguments: object) -> None:
            self.release()

    lock: Any = Own()
    with threading.Condition(lock) as _:
        assert lock.calls == ["acquire"]
    assert lock.calls == ["acquire", "release"]
