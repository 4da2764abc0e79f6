"""The properties of controllers and of replicas, judged and computed a second time."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from bench.control_plane_bugs import controllers, replicas
from bench.control_plane_bugs.bugs_of_08 import ONLY_REPLICA_ON_THE_CONTROLLER, TWO_SENDERS
from bench.control_plane_bugs.mutant import Scenario, nothing

from tests.pipeline.test_analysis import Shown, analyzed, tampered_verdict, write_run
from tests.sim import test_controller_chaos, test_replication_chaos
from tests.support.endless_reigns import endless_reigns
from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.model.controller import controller, preferred
from watchkeeper.model.properties.control_plane.judges import OF_CONTROL_PLANES
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.scenarios import ScenarioError

pytestmark = pytest.mark.slow  # one analysis of 45 runs: minutes
CLAIMS = [claim.name for claim in OF_CONTROL_PLANES]
RUNS = (
    ("controller-paused", "kafka_08", 1),
    ("controller-crash", "documented", 1),
    ("partition-moves-controller-crashes", "documented", 1),
    ("controller-epoch-reply-lost", "kafka_08", 1),
    ("cold-start", "hardened", 2),
    ("power-lost", "hardened", 3),
    ("leader-and-successor-crash", "kafka_08", 0),
    ("partition-moves-controller-crashes", "kafka_08", 1),
    ("partition-moves-broker-down", "kafka_08", 2),
    ("partitions-added-during-move", "kafka_08", 1),
    ("topic-deleted-by-hand", "kafka_08", 1),
    ("topic-deleted-by-hand", "hardened", 1),
    ("topic-deleted-controller-crashes", "kafka_08", 1),
    ("settings-changed-twice", "kafka_08", 1),
    ("settings-changed-twice", "hardened", 1),
    ("rolling-restart", "hardened", 4),
    ("leaders-balanced", "hardened", 1),
    ("preferred-leader-dead", "kafka_08", 1),
    ("last-in-sync-crashes", "hardened", 1),
    ("group-reads-replicas", "kafka_08", 1),
    ("follower-longer-than-leader", "kafka_08", 1),
    ("isr-in-metadata", "kafka_08", 1),
    ("partition-added-after-reign", "kafka_08", 1),
    ("topic-created-twice", "kafka_08", 1),
    ("partitions-added-by-id", "kafka_08", 1),
    ("partitions-added-by-id", "hardened", 1),
    ("deletion-switched-off", "kafka_08", 1),
    ("controller-expires-while-it-balances", "kafka_08", 1),
    ("group-reads-then-unclean-election", "hardened", 1),
    ("coordinator-crash-while-compacting", "kafka_08", 1),
)
BUGS = ("KAFKA-858", "KAFKA-999", "KAFKA-532", "KAFKA-705")
"""Bugs that are put back, each in its replay or its scenario."""


REPLAYS: tuple[tuple[str, Scenario], ...] = (
    ("two-senders", TWO_SENDERS),
    ("dead-leader", ONLY_REPLICA_ON_THE_CONTROLLER),
    ("endless-reigns", endless_reigns()),
)
"""Timelines of their own: what they show takes longer in a shipped scenario, or is in none."""
TAMPERED = ("leader-and-successor-crash", "hardened", 5)


def runs_with_bugs() -> Iterator[Result]:
    """Runs that violate what no shipped program violates."""
    for bug in (*controllers.BUGS, *replicas.BUGS):
        if bug.name in BUGS:
            replay = bug.scenarios[0]
            named = {**replay, "name": bug.name.lower()} if isinstance(replay, dict) else replay
            with bug.apply():
                yield simulate(named, variant=bug.variant, seed=3)


def runs_without_preferred_leaders() -> Iterator[Result]:
    """Controllers do not look at who leads, elect no broker on request, and leave the request."""
    for name, where, what in (
        ("leaders-balanced", controller, "rebalance_leaders"),
        ("preferred-leader-dead", preferred, "elect_preferred"),
        ("preferred-leader-dead", preferred, "_delete_request"),
    ):
        with patch.object(where, what, nothing):
            yield simulate(name, variant="hardened", seed=2)


def drawn_runs() -> Iterator[Result]:
    """Runs whose timelines are drawn; some contradict themselves."""
    for module, seeds in ((test_replication_chaos, range(2)), (test_controller_chaos, range(1))):
        for seed in seeds:
            for variant in ("kafka_08", "hardened"):
                try:
                    yield simulate(
                        {**module.drawn(seed), "name": f"drawn-{module.__name__[-20:]}-{seed}"},
                        variant=variant,
                        seed=seed,
                    )
                except ScenarioError:
                    continue


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One analysis of runs that hold, runs that do not, and one that was tampered with."""
    home = tmp_path_factory.mktemp("control-plane")
    results = [simulate(name, variant=variant, seed=seed) for name, variant, seed in RUNS]
    results += [
        simulate({**replay, "name": name}, variant="kafka_08", seed=1) for name, replay in REPLAYS
    ]
    results += runs_with_bugs()
    results += runs_without_preferred_leaders()
    results += drawn_runs()
    for result in results:
        write_run(home / "runs", result)
    name, variant, seed = TAMPERED
    tampered = write_run(home / "tampered", simulate(name, variant=variant, seed=seed))
    for claim in CLAIMS:
        tampered_verdict(tampered, claim)
    with pytest.MonkeyPatch.context() as patch:
        return analyzed(home, patch, results)


def test_the_second_computation_says_the_same(shown: Shown) -> None:
    """Of every property, but for the verdicts that were changed in a folder."""
    found = {(row["run"], row["property"]) for row in shown.summary["differences"]}
    name, variant, seed = TAMPERED
    assert found == {(f"{name}-{variant}-sim-{seed}", claim) for claim in CLAIMS}
    assert set(CLAIMS) <= set(shown.summary["agreed"])


def test_each_verdict_is_among_the_runs(shown: Shown) -> None:
    """Otherwise agreement says nothing; three properties are violated by no run here."""
    seen: dict[str, set[Verdict]] = {claim: set() for claim in CLAIMS}
    for result in shown.results:
        for finding in result.findings:
            if finding.claim.name in seen:
                seen[finding.claim.name].add(finding.verdict)
    lacking = {claim for claim, verdicts in seen.items() if Verdict.VIOLATED not in verdicts}
    assert lacking <= {
        "acting controller",
        "high watermark rises",
        "one cluster id",
    }
    assert all(Verdict.HOLDS in verdicts for verdicts in seen.values())
