"""Kazoo's own client in virtual time: faults, properties, seeds, failures, replays."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, NodeExistsError, SessionExpiredError

from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.virtual import Violation, VirtualTimeError, World, faults, replay, simulated
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.schedule.recorded import Recorded
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.checks import NothingLeft, NoThreadBlocked, NoThreadDied
from watchkeeper.virtual.world.faults import FaultKind, Strike
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.shrink import shrink
from watchkeeper.virtual.world.world import WorldSettings

HERE = Path(__file__)


def started(world: World) -> Any:
    """A client that has a session."""
    client = KazooClient(hosts=world.hosts)
    client.start(timeout=30)
    return client


def case(
    test: Any, *, until_s: float = 60.0, servers: int = 1, drawn: Any = (), **more: Any
) -> Case:
    """A test with its settings."""
    return Case("a test", test, WorldSettings(until_s=until_s, servers=servers, **more), drawn)


def once(test: Any, *strikes: Strike, seed: int = 0, **settings: Any) -> Outcome:
    """One run with the default schedule."""
    outcome = run_once(case(test, **settings), FirstInFirstOut(), "fifo", seed=seed, plan=strikes)
    assert not outcome.deaths, outcome.tracebacks
    return outcome


def strike(fault: Any, request: int, *, lasts_s: float = 2.0, after_s: float = 0.0) -> Strike:
    """A strike that comes with a request."""
    return Strike(fault, request, after_s, lasts_s, 0.0)


def test_a_client_in_virtual_time() -> None:
    """An unmodified client creates, reads, watches and stops."""
    seen: list[Any] = []

    def user(world: World) -> None:
        client = started(world)
        client.create("/a", b"1")
        client.get("/a", watch=lambda event: seen.append(event.type))
        client.set("/a", b"2")
        seen.append(client.get("/a")[0])
        client.stop()
        client.close()

    outcome = once(lambda world: world.process("user", user, world))

    assert sorted(map(str, seen)) == ["CHANGED", "b'2'"]
    assert {row[1] for row in outcome.rows} >= {"user", "zookeeper/1"}
    assert outcome.end_us < 1_000_000


def test_an_idle_client_keeps_its_session() -> None:
    """Pings go on in an hour of calm, and nothing is lost."""
    states: list[str] = []

    def user(world: World) -> None:
        client = started(world)
        client.add_listener(states.append)
        time.sleep(3600)
        assert client.client_id[0] in world.zookeeper.ensemble.head.sessions
        client.stop()

    once(lambda world: world.process("user", user, world), until_s=4000)

    assert states == [KazooState.LOST]


def test_a_lost_reply_is_an_effect_that_its_client_does_not_see() -> None:
    """The create takes effect, its client has a lost connection, and the effect is counted."""
    errors: list[str] = []

    def user(world: World) -> None:
        client = started(world)
        try:
            client.create("/a")
        except ConnectionLoss:
            errors.append("lost")
        while not client.connected:
            time.sleep(0.1)
        with pytest.raises(NodeExistsError):
            client.create("/a")
        client.stop()

    blow = strike(faults.lost_reply(operation="create", path="/a"), 0)
    outcome = once(lambda world: world.process("user", user, world), blow)

    assert errors == ["lost"]
    assert outcome.struck[0].effects == {"replies lost": 1}


def test_a_late_request_lands_after_its_client_went_on() -> None:
    """The create is there some time after the client has read that it is not."""

    def user(world: World) -> None:
        client = started(world)
        with pytest.raises(ConnectionLoss):
            client.create("/late")
        while not client.connected:
            time.sleep(0.01)
        assert client.retry(client.exists, "/late") is None
        time.sleep(6)
        assert client.retry(client.exists, "/late") is not None
        client.stop()

    blow = strike(faults.late_request(operation="create", path="/late"), 0, lasts_s=5.0)
    outcome = once(lambda world: world.process("user", user, world), blow)

    assert outcome.struck[0].effects == {"requests lost": 1, "late requests executed": 1}


STATES = {
    "expire": (faults.expire(), [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED]),
    "disconnect": (faults.disconnect(), [KazooState.SUSPENDED, KazooState.CONNECTED]),
    "a long cut": (
        faults.cut(),
        [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED],
    ),
    "a long pause": (
        faults.pause(),
        [KazooState.SUSPENDED, KazooState.LOST, KazooState.CONNECTED],
    ),
}


@pytest.mark.parametrize("what", STATES)
def test_a_client_goes_through_the_states_of_a_fault(what: str) -> None:
    """kazoo's listener sees what it sees of a real server."""
    fault, expected = STATES[what]
    states: list[str] = []

    def user(world: World) -> None:
        client = started(world)
        client.add_listener(lambda state: states.append(state))
        client.retry(client.ensure_path, "/a")
        time.sleep(50)
        client.remove_listener(client.state_listeners and next(iter(client.state_listeners)))
        client.stop()

    blow = strike(fault, 1, lasts_s=20.0 if "long" in what else 1.0, after_s=0.5)
    outcome = once(lambda world: world.process("user", user, world), blow)

    assert states == expected
    assert sum(outcome.struck[0].effects.values()) > 0


SERVER_FAULTS = {
    "lag": faults.lag(),
    "leader loss": faults.leader_loss(),
    "quorum loss": faults.quorum_loss(),
    "clock skew": faults.clock_skew(),
    "delay": faults.delay(),
    "crash": faults.crash(),
    "lost request": faults.lost_request(),
}


@pytest.mark.parametrize("what", SERVER_FAULTS)
def test_each_fault_has_an_effect(what: str) -> None:
    """A fault that strikes a client at work counts what it has struck."""
    effects: set[str] = set()

    def user(world: World) -> None:
        client = started(world)
        for at in range(30):
            client.retry(client.ensure_path, f"/a{at}")
            time.sleep(0.2)
        client.stop()

    def test(world: World) -> None:
        for name in "abc":
            world.process(name, user, world)

    for seed in range(4):
        blow = strike(SERVER_FAULTS[what], 20 + seed, lasts_s=2.0)
        outcome = run_once(
            case(test, servers=3), RandomPolicy(seed), "random", seed=seed, plan=(blow,)
        )
        effects |= set(outcome.struck[0].effects)
    assert effects


def deaf(world: World, name: str, hold_s: float) -> None:
    """Holds a lock by an ephemeral, and looks at nothing while it works."""
    client = started(world)
    while True:
        try:
            client.create("/lock", ephemeral=True)
            break
        except NodeExistsError:
            time.sleep(0.2)
    with world.section("lock", client):
        time.sleep(hold_s)
    client.stop()


def two_deaf(world: World) -> None:
    """Two of them."""
    for name in "ab":
        world.process(name, deaf, world, name, 30.0)


def test_a_holder_that_does_not_know_it_is_no_violation_of_the_strict_form() -> None:
    """A session that ends under its holder violates the plain form, which is reported alone."""
    outcome = run_once(
        case(two_deaf),
        FirstInFirstOut(),
        "fifo",
        seed=0,
        plan=(strike(faults.expire(victims=("a",)), 3, after_s=1.0),),
    )
    plain = next(
        each for each in outcome.findings if each.claim.name == "mutual exclusion of lock"
    )
    strict = next(each for each in outcome.findings if each.claim.name.endswith("strict"))

    assert (plain.verdict, plain.counts) == (Verdict.VIOLATED, False)
    assert strict.verdict is Verdict.HOLDS
    assert outcome.verdict is Verdict.HOLDS


def test_a_holder_is_in_the_session_of_its_acquisition() -> None:
    """Who enters late, in a new session, is no holder in the strict form: its own has ended."""

    def user(world: World, name: str, acquired: dict[str, int]) -> None:
        client = started(world)
        with world.section("work", client, session=acquired.get(name)):
            time.sleep(1)

    def both(acquired: dict[str, int]) -> Outcome:
        def test(world: World) -> None:
            for name in "ab":
                world.process(name, user, world, name, acquired)

        return once(test)

    def verdicts(outcome: Outcome) -> list[Verdict]:
        return [finding.verdict for finding in outcome.findings if "work" in finding.claim.name]

    assert verdicts(both({}))[0] is Verdict.VIOLATED
    assert verdicts(both({"a": 1})) == [Verdict.HOLDS, Verdict.VIOLATED]


def test_two_holders_with_living_sessions_violate_the_strict_form() -> None:
    """A lock that locks nothing is found."""

    def user(world: World) -> None:
        client = started(world)
        with world.section("lock", client):
            time.sleep(1)
        client.stop()

    def test(world: World) -> None:
        for name in "ab":
            world.process(name, user, world)

    outcome = once(test)

    assert outcome.verdict is Verdict.VIOLATED
    assert "at once" in outcome.violated[0].evidence


def test_each_ready_made_property_has_a_run_that_violates_it() -> None:
    """A dead thread, one that waits for ever, a znode that is left, a doubled element."""

    def user(world: World) -> None:
        import threading

        client = started(world)
        client.create("/left")
        threading.Thread(target=lambda: 1 // 0, name="divider").start()
        threading.Thread(target=threading.Event().wait, name="waiter").start()
        jobs.put("lost")
        jobs.took("doubled", outer)
        jobs.took("doubled", outer)
        client.stop()

    def test(world: World) -> None:
        nonlocal jobs, outer
        jobs, outer = world.elements("jobs"), world
        world.check(NoThreadDied())
        world.check(NoThreadBlocked(5))
        world.check(NothingLeft("/"))
        world.always(lambda: world.now_s < 0.001, name="early")
        world.eventually(lambda: False, within_s=5, name="never")
        world.finally_(lambda: False, name="wrong at the end")
        world.process("user", user, world)

    jobs: Any = None
    outer: Any = None
    outcome = run_once(case(test, until_s=20), FirstInFirstOut(), "fifo", seed=0)

    violated = {finding.claim.name for finding in outcome.violated}
    assert violated == {
        *("elements of jobs", "no thread died", "no thread blocked", "nothing left in /"),
        *("early", "never", "wrong at the end"),
    }


def lead(world: World, name: str, terms: list[str]) -> None:
    """An election that takes its own znode for that of another process."""
    client = started(world)
    while terms.count(name) < 2:
        try:
            client.retry(client.create, "/leader", name.encode(), ephemeral=True)
        except NodeExistsError:
            time.sleep(0.5)
            continue
        with world.section("leading", client):
            terms.append(name)
            time.sleep(1)
        client.retry(client.delete, "/leader")
    client.stop()


def election(world: World) -> None:
    """Two of them, which both have to lead."""
    terms: list[str] = []
    for name in ("ann", "bob"):
        world.process(name, lead, world, name, terms)
    world.eventually(lambda: len(terms) == 4, within_s=30, name="all terms")


def failing() -> tuple[Case, Outcome]:
    """The first run of the election that fails."""
    test = case(election, drawn=(faults.lost_reply(), faults.pause()))
    campaign = Campaign(test, parse_policy("random"))
    outcome = next(
        outcome for outcome in campaign.run_all(range(100)) if outcome.verdict is Verdict.VIOLATED
    )
    return test, outcome


def test_a_failing_run_is_made_smaller_and_replayed() -> None:
    """One lost reply and the default order of threads are left, and give the same run again."""
    test, outcome = failing()
    small = shrink(test, outcome)

    assert [each.fault.kind for each in small.plan] == [FaultKind.LOST_REPLY]
    assert len(small.schedule) <= len(outcome.schedule)
    again = run_once(test, Recorded(small.schedule), "random", seed=small.seed, plan=small.plan)
    assert again.fingerprint == small.fingerprint


def both_at_work(world: World) -> None:
    """Two processes that do not exclude each other, and go on for a minute."""

    def work() -> None:
        for _ in range(10):
            with world.section("work"):
                time.sleep(3)
            time.sleep(3)

    for name in ("ann", "bob"):
        world.process(name, work)


def lost_for_long(world: World) -> None:
    """An element that is put at once and taken after half a minute."""
    jobs = world.elements("jobs")

    def work() -> None:
        jobs.put("one")
        jobs.put("other")
        time.sleep(30)
        jobs.took("one", world)
        time.sleep(20)

    world.process("ann", work)


def test_a_smaller_run_ends_soon_after_the_violation() -> None:
    """What is judged at the end of a run is not: the run that ends early is another one."""
    campaigns = [
        Campaign(case(test), parse_policy("random")) for test in (both_at_work, lost_for_long)
    ]
    overlap, loss = (shrink(each.case, each.run(0)) for each in campaigns)
    found = overlap.violated[0]

    assert overlap.end_us < 2_000_000
    assert overlap.until_s == pytest.approx((found.at_us or 0) / 1e6 + 1)
    assert loss.end_us > 50_000_000


def test_the_decorator_writes_what_replays_the_failure(tmp_path: Path) -> None:
    """A failing test has at most twelve lines, a page, a trace, a replay and a test."""
    with pytest.raises(Violation) as found:
        decorated(tmp_path)()
    message = str(found.value)

    assert len(message.splitlines()) <= 12
    assert "mutual exclusion of leading, strict is violated at" in message
    (folder,) = tmp_path.iterdir()
    assert {file.name for file in folder.iterdir()} == {
        *("trace.jsonl", "spacetime.html", "verdict.json", "replay.json", "test_replay.py"),
        *("transcript.txt", "ownership.png", "ownership.html"),
    }
    value = json.loads((folder / "replay.json").read_text())
    assert "mutual exclusion of leading, strict" in value["violates"]
    with pytest.raises(VirtualTimeError, match="no test"):
        replay(folder / "replay.json")


def decorated(out: Path) -> Any:
    """The election, decorated."""
    return simulated(seeds=100, faults=[faults.lost_reply()], out=out)(election)


def test_the_order_of_hashes_does_not_matter(tmp_path: Path) -> None:
    """Two processes with other hash seeds give the same fingerprints for one seed."""
    program = tmp_path / "fingerprints.py"
    program.write_text(
        "from tests.virtual.world.test_worlds import *\n"
        "test = case(election, drawn=(faults.lost_reply(), faults.expire(), faults.crash()))\n"
        "campaign = Campaign(test, parse_policy('random'))\n"
        "print([campaign.run(seed).fingerprint for seed in range(8)])\n"
    )
    found = {
        subprocess.run(
            [sys.executable, program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(HERE.parents[3])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1, 2)
    }

    assert len(found) == 1
    assert found.pop().count(",") == 7


WRONG: dict[str, tuple[Any, str]] = {
    "no process": (lambda world: None, "starts no process"),
    "an error": (lambda world: 1 // 0, "fails while it prepares its world: ZeroDivisionError"),
    "no function": (lambda world: world.process("a", "work"), "cannot be called"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_world_that_is_prepared_wrongly_is_a_sentence(what: str) -> None:
    """The error says what to do."""
    test, sentence = WRONG[what]
    with pytest.raises(VirtualTimeError, match=sentence):
        run_once(case(test), FirstInFirstOut(), "fifo", seed=0)


def test_another_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """gevent and eventlet bring a clock and an order of their own."""
    for name, method in (
        ("gevent.monkey", "is_module_patched"),
        ("eventlet.patcher", "is_monkey_patched"),
    ):
        module = type(sys)(name)
        setattr(module, method, lambda what: True)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, module)
            with pytest.raises(VirtualTimeError, match="order"):
                run_once(case(election), FirstInFirstOut(), "fifo", seed=0)


def test_faults_of_servers_need_several() -> None:
    """A leader cannot be lost where there is one server."""
    with pytest.raises(VirtualTimeError, match="servers=3"):
        simulated(faults=[faults.leader_loss()])


def test_an_error_of_a_session_that_has_ended() -> None:
    """A request in a session that expired raises what it raises with a real server."""
    errors: list[str] = []

    def user(world: World) -> None:
        client = started(world)
        client.create("/a")
        try:
            for _ in range(100):
                client.exists("/a")
                time.sleep(0.1)
        except (SessionExpiredError, ConnectionLoss) as error:
            errors.append(type(error).__name__)
        client.stop()

    once(
        lambda world: world.process("user", user, world),
        strike(faults.expire(), 3, after_s=0.01),
    )
    assert errors


def finding_of_expired(member: Callable[[World], object]) -> Finding:
    """What *eventually* says of a member whose session expires 2 s after it has registered."""

    def test(world: World) -> None:
        world.process("member", member, world)
        world.eventually(lambda: "/member" in world.znodes, within_s=10, name="a member")

    blow = strike(faults.expire(), 1, after_s=2)
    outcome = run_once(case(test), FirstInFirstOut(), "fifo", seed=0, plan=(blow,))
    assert outcome.struck[0].effects, "the session expired"
    (found,) = (each for each in outcome.findings if each.claim.name == "a member")
    return found


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_was_true_before_a_fault_has_to_come_true_again(comes_back: bool) -> None:
    """A member is there before its session expires; afterwards only one that registers again."""

    def member(world: World) -> None:
        client = started(world)
        client.create("/member", ephemeral=True)
        time.sleep(5)
        while comes_back and not client.connected:
            time.sleep(0.5)
        if comes_back:
            client.create("/member", ephemeral=True)
        time.sleep(30)

    found = finding_of_expired(member)
    assert found.verdict is (Verdict.HOLDS if comes_back else Verdict.VIOLATED)


def test_a_fault_shortly_before_the_end_says_nothing() -> None:
    """It was true, and the process ends before it could come true again."""

    def member(world: World) -> None:
        client = started(world)
        client.create("/member", ephemeral=True)
        time.sleep(3)

    found = finding_of_expired(member)
    assert found.verdict is Verdict.UNKNOWN
    assert "let them run longer" in found.evidence


@pytest.mark.parametrize("kind", ["always", "eventually", "finally_"])
def test_a_predicate_that_fails_is_a_sentence(kind: str) -> None:
    """It is a mistake of the test, and no violation."""

    def broken(world: World) -> bool:
        return bool(world.no_such_thing)  # type: ignore[attr-defined]

    def test(world: World) -> None:
        world.process("user", time.sleep, 1)
        getattr(world, kind)(broken)

    with pytest.raises(VirtualTimeError, match=r"'broken' of the test fails by AttributeError"):
        once(test)


def test_predicates_see_the_znodes() -> None:
    """With their data, as the leader has them."""
    seen: list[dict[str, bytes]] = []

    def user(world: World) -> None:
        client = started(world)
        client.create("/a/b", b"1", makepath=True)
        seen.append(world.znodes)
        client.stop()

    once(lambda world: world.process("user", user, world), servers=3)

    assert {path: seen[0][path] for path in ("/a", "/a/b")} == {"/a": b"", "/a/b": b"1"}


def two_locks(world: World, *, in_order: bool) -> None:
    """Two threads that take two locks, in one order or in opposite ones."""
    left, right = threading.Lock(), threading.RLock()

    def take(first: Any, second: Any) -> None:
        with first:
            time.sleep(0.1)
            with second:
                world.record("both")

    other = threading.Thread(target=take, args=(left, right), name="other")
    other.start()
    take(*((left, right) if in_order else (right, left)))
    other.join()


def test_threads_that_wait_for_each_other_are_found() -> None:
    """No check has to be named; in one order they pass."""
    found, fine = (
        once(lambda world, order=order: world.process("p", two_locks, world, in_order=order))
        for order in (False, True)
    )

    (finding,) = found.violated
    assert finding.claim.name == "no deadlock"
    assert finding.evidence == (
        "threads of p wait for each other's locks: MainThread for other, other for MainThread"
    )
    assert finding.at_us is not None
    assert 99_000 < finding.at_us < 101_000
    assert fine.violated == ()


def test_threads_that_wait_for_a_notification_are_no_deadlock() -> None:
    """Each waits at a condition, whose lock it has taken itself, while the other has another."""

    def main() -> None:
        conditions = [threading.Condition() for _ in range(2)]

        def wait(mine: threading.Condition, other: threading.Condition) -> None:
            with other, mine:
                mine.wait()

        threading.Thread(target=wait, args=conditions).start()
        time.sleep(1)
        wait(*reversed(conditions))

    outcome = once(lambda world: world.process("p", main), until_s=5)

    assert [each.claim.name for each in outcome.violated] == []
