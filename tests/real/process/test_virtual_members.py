"""The code of live runs in virtual time: driver, kazoo client, fetchers and brokers' servers.

What a live run shows in half a minute shows here in a tenth of a second, from a seed: the shipped
scenarios have the verdicts of the simulation, whose members are driven by other code.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import EventType, WatchedEvent

from tests.support.virtual_members import Ran, run_members
from watchkeeper import Broker, Consumer, simulate
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import Create, GetChildren
from watchkeeper.model.plan.faults import Action
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.real.client.client import Client, Reply
from watchkeeper.real.world.capabilities import lacking
from watchkeeper.scenarios import shipped
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.world import World, WorldSettings


def run_here(name: str, variant: str, seed: int, folder: Path) -> Ran:
    return run_members(scenario_of(name).plan(variant), seed, folder)


def violated(findings: Iterable[Finding]) -> set[str]:
    """The properties that count and are violated."""
    return {
        finding.claim.name
        for finding in findings
        if finding.counts and finding.verdict is Verdict.VIOLATED
    }


LONG_NAMES = """
    at-least-once at-most-once broker-rolling-bounce claims-in-conflict commits-before-release
    commits-by-leader-alone commits-without-timer connection-loss-mid-commit coordinator-crash
    exactly-once few-retries follower-longer-than-leader follower-stands-still
    group-reads-replicas isr-in-metadata last-in-sync-crashes-unclean late-group
    leaders-balanced lost-and-regained-twice many-streams many-topics-created mass-start-herd
    metadata-stale mirror-commits-first mirror-crash no-repeats offsets-move-to-kafka-and-back
    offsets-roll-back-as-worded partition-moves partition-moves-controller-crashes
    partition-moves-to-dead-broker partitions-added-during-move power-lost
    preferred-election-of-unknown-partition preferred-leader-dead producer-crash
    rebalance-duplicates replica-rejoins rolling-restart rolling-restart-by-kill
    rolling-upgrade round-robin topic-created-by-load topic-deleted-by-hand topic-recreated
    zombie-commits
"""
LONG = frozenset(LONG_NAMES.split())
"""Half a CPU second and more each; what strikes in them strikes in the quick ones too."""
LEFT_OUT = ("broker-disk-full", "produce-reply-lost", "coordinator-crash-while-compacting")
"""What no live world can do; and two actions at one step, of which the first ends its process.

The second never strikes here, where a step calls the nemesis in the thread of the process.
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
        for name in shipped()
        if name not in LEFT_OUT
    ],
)
def test_a_shipped_scenario_holds_as_in_simulation(name: str, tmp_path: Path) -> None:
    """Each property that the simulation judges is judged, and has one of its verdicts."""
    simulated = simulate(name, seed=0, variant="hardened")
    ran = run_here(name, "hardened", 0, tmp_path)

    findings = ran.judgement.findings
    found = violated(findings)
    if found != violated(simulated.findings):
        others = [simulate(name, seed=seed, variant="hardened") for seed in range(1, 6)]
        assert found in [violated(each.findings) for each in others]
    names = {each.claim.name for each in findings}
    assert {each.claim.name for each in simulated.findings} <= names
    assert all(effect.counts or effect.missed for effect in ran.effects)


def test_the_quick_ones_strike_as_all_do() -> None:
    """Each verb, of each kind of process and moment, is in a scenario that is not long."""

    def struck(action: Action) -> tuple[str, str, str]:
        kind = action.target.partition("/")[0].partition(" ")[0]
        known = kind in ("broker", "zookeeper", "controller", "leader", "administrator")
        return action.verb.name, kind if known else "member", type(action.trigger).__name__

    def strikes(names: Iterable[str]) -> set[tuple[str, str, str]]:
        plans = [scenario_of(name).plan("hardened") for name in names]
        actions = [action for plan in plans for action in plan.timeline]
        return {struck(action) for action in actions if action.verb.kind == "fault"}

    ran = set(shipped()) - set(LEFT_OUT)
    assert strikes(ran - LONG) == strikes(ran)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_cannot_run(name: str) -> None:
    """A scenario that can run is among those of the test before this one."""
    plan = scenario_of(name).plan("hardened")
    steps = Counter(action.trigger for action in plan.timeline if action.trigger is not None)

    assert any(lacking(plan)) or max(steps.values()) > 1


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    """Event for event; another seed is another run."""
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    first, again, other = (
        run_here("consumer-crash", "hardened", seed, folder).trace.fingerprint
        for seed, folder in zip((0, 0, 1), folders, strict=True)
    )

    assert first == again
    assert first != other


def test_the_bugs_of_a_shipped_variant_are_found(tmp_path: Path) -> None:
    """Kafka 0.7.2 fetches what it has no claim to once its session has ended, here too."""
    ran = run_here("session-expiry", "kafka_07", 0, tmp_path)

    assert "truthful registry" in violated(ran.judgement.findings)


def test_a_client_that_drops_notifications_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the code of live runs itself: no member takes over after a crash."""
    fired = Client._fired

    def deaf(client: Client, event: WatchedEvent) -> None:
        if event.type != EventType.CHILD:
            fired(client, event)

    monkeypatch.setattr(Client, "_fired", deaf)
    ran = run_here("consumer-crash", "hardened", 0, tmp_path)

    assert "progress" in violated(ran.judgement.findings)


BUGGY = ("connection-loss-mid-claim", "late-requests", "old-servers", "late-fence")


@pytest.mark.parametrize("name", BUGGY)
def test_a_shipped_variant_violates_what_it_violates_in_simulation(
    name: str, tmp_path: Path
) -> None:
    """Its client sets its watches again after a reconnection, or it would miss changes."""
    simulated = [simulate(name, seed=seed, variant="kafka_07") for seed in range(3)]
    known = set().union(*(violated(result.findings) for result in simulated))
    ran = run_here(name, "kafka_07", 0, tmp_path)

    assert violated(ran.judgement.findings) <= known


@pytest.mark.parametrize("resends", [True, False])
def test_a_client_hears_of_what_it_missed_if_it_resends_its_watches(resends: bool) -> None:
    """Below a chroot too: of a change while it was disconnected, and of one afterwards."""
    events: list[Any] = []

    def member(world: World) -> None:
        def is_there(kind: type[Any], number: int) -> bool:
            return sum(type(event.content) is kind for event in events) >= number

        def wait(condition: Callable[[], bool]) -> None:
            while not condition():
                time.sleep(0.01)

        client = Client(world.hosts, "/app", 4000, events.append, resends_watches=resends)
        client.start()
        wait(lambda: client.state == "connected")
        for path in ("/a", "/b"):
            assert client.make_chroot()
            client.submit((Create(path, b""), GetChildren(path, watch=True)), client.generation)
        wait(lambda: is_there(Reply, 4))
        world.zookeeper.control.do("disconnect", {"session": client.session, "for_s": 1.0})
        wait(lambda: client.state == "suspended")
        wait(lambda: client.state == "connected")
        time.sleep(3)
        client.close()

    def other(world: World) -> None:
        client = KazooClient(hosts=world.hosts)
        client.start()
        while not any(event.content == "suspended" for event in events):
            time.sleep(0.01)
        client.create("/app/a/child")
        time.sleep(2)
        client.create("/app/b/child")
        client.stop()

    def test(world: World) -> None:
        world.process("member", member, world)
        world.process("other", other, world)

    outcome = run_once(
        Case("a client", test, WorldSettings(until_s=20)), RandomPolicy(0), "random", seed=0
    )
    fired = [event.content.path for event in events if isinstance(event.content, Fired)]
    assert not outcome.deaths, outcome.tracebacks
    assert fired == (["/a", "/b"] if resends else [])


@pytest.mark.parametrize("waits", [True, False])
def test_a_client_opens_no_session_before_its_program_wants_one(waits: bool) -> None:
    """A program that does not know yet that its session has ended holds what it held."""
    states: list[str] = []

    def member(world: World) -> None:
        client = Client(world.hosts, "", 4000, lambda event: None, waits_for_program=waits)
        client.start()
        time.sleep(1)
        world.zookeeper.control.do("expire", {"session": client.session})
        time.sleep(5)
        states.append(client.state)
        client.open_session()
        time.sleep(1)
        states.append(client.state)
        world.zookeeper.control.do("expire", {"session": client.session})
        time.sleep(5)
        client.close()  # also while it waits for its program
        states.append(client.state)

    outcome = run_once(
        Case("a client", lambda world: world.process("member", member, world), WorldSettings()),
        RandomPolicy(0),
        "random",
        seed=0,
    )
    assert not outcome.deaths, outcome.tracebacks
    assert states == ["expired" if waits else "connected", "connected", "closed"]
    assert outcome.end_us < 20_000_000


@pytest.mark.parametrize("variant", ["kafka_07", "hardened"])
def test_an_embedded_member_sees_what_it_missed(variant: str) -> None:
    """A second consumer joins while the first one is disconnected within its session."""
    shares: dict[str, list[int]] = {"first": [], "second": []}

    def consume(world: World, name: str) -> None:
        consumer = Consumer(
            world.hosts,
            group="group",
            topics={"clicks": 1},
            variant=variant,
            layout="0.7",
            consumer_id=name,
            on_partitions_assigned=lambda places: shares[name].append(len(places)),
        )
        with consumer:
            if name == "first":
                time.sleep(6)
                (session,) = world.sessions_of(world.scheduler.running.process)  # type: ignore[union-attr]
                world.zookeeper.control.do("disconnect", {"session": session, "for_s": 1.5})
            time.sleep(40)

    def serve(world: World) -> None:
        with Broker(world.hosts, id=0, host="host", topics={"clicks": 4}):
            time.sleep(60)

    def test(world: World) -> None:
        world.process("broker", serve, world)
        world.process("first", consume, world, "first", starts_at_s=2)
        world.process("second", consume, world, "second", starts_at_s=8.5)

    outcome = run_once(
        Case("members", test, WorldSettings(until_s=30)), RandomPolicy(0), "random", seed=0
    )
    assert not outcome.deaths, outcome.tracebacks
    assert sum(shares["second"]) == 2, shares
