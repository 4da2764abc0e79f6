"""Runs are analysed from their traces: every property a second time, measures, coverage.

One analysis serves most of these tests, since Spark takes its time: it has runs that hold and
runs that do not, a sweep, and runs of which a verdict or a trace was tampered with.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from bisect import insort
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import HOME, SOURCE
from tests.support.messages.random_traces import Computed, computed_of, drawn_traces, judged
from tests.support.mutant_consumers import (
    consumer_that,
    consumer_that_stays,
    does_nothing,
    scenario,
    shares_with_all,
)
from tests.support.pipeline import analysis_plain as plain
from watchkeeper import simulate
from watchkeeper.analyze.analyze import failing_run, kept_profile
from watchkeeper.analyze.runs import gathered
from watchkeeper.api.folder import prepare, read_trace
from watchkeeper.api.result import Result
from watchkeeper.api.run_files import fill
from watchkeeper.cli.main import run_command
from watchkeeper.model.delivery.ledger import Ledger
from watchkeeper.model.properties.delivery import DeliveryJudge
from watchkeeper.model.properties.starvation import PunctualityJudge, StarvationJudge
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.trace import Event
from watchkeeper.pipeline.analysis.cross_check import TRACE
from watchkeeper.pipeline.analysis.failure_clusters import needed
from watchkeeper.pipeline.analysis.lags import HANDED_ON, LAGS
from watchkeeper.pipeline.analysis.store import replacing, write_summary
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.faults.fork import Branch
from watchkeeper.sim.world import simulate as simulate_plan

RUNS = (
    ("consumer-crash", "hardened", 0),
    ("consumer-crash", "documented", 0),
    ("session-expiry", "kafka_07", 0),
    ("session-outlives-member", "hardened", 0),
    ("session-outlives-member", "documented", 1),
    ("two-sessions-in-a-process", "kafka_07", 0),
    ("gc-pause-zombie", "kafka_08", 0),
    ("consumer-restart-same-id", "kafka_07", 1),
    ("documented-floor-orphans", "documented", 0),
    ("registration-deleted", "hardened", 0),
    ("claim-deleted", "kafka_07", 0),
    ("offset-set-back", "kafka_07", 0),
    ("new-topic-filter", "kafka_08", 0),
    ("partition-added", "documented", 0),
    ("broker-crash", "hardened", 0),
    ("exactly-once", "hardened", 0),
    ("at-most-once", "documented", 0),
    ("broker-crash-unflushed", "hardened", 0),
    ("topic-recreated", "hardened", 0),
    ("mirror-crash", "hardened", 0),
    ("mirror-commits-first", "hardened", 0),
    ("mirror-moved-group", "hardened", 0),
)
"""Runs in which between them nearly every property holds, and is violated."""
COUNTS = (
    *("accepted", "refused", "never_stored", "stored_twice", "consumed", "coming", "lost"),
    "unread",
)
PATHS = {**os.environ, "PYTHONPATH": str(SOURCE)}
SHARE = ("stored", "skipped", "repeated", "unread")
OF_MESSAGES = ("order", "sane commits", "no starvation", "punctual sending")


class Shown(NamedTuple):
    """What the command left and printed."""

    code: int
    summary: dict[str, Any]
    complaints: str
    out: Path
    results: list[Result]
    """Of the runs that were not tampered with."""


def write_run(out: Path, result: Result) -> Path:
    """The folder of a run, as the command line writes it."""
    return fill(prepare(out, result.trace.header.run_id), result, pictures=False).home


def tampered_verdict(home: Path, name: str) -> None:
    """Turn round what the folder of a run says of a property."""
    verdict = json.loads((home / "verdict.json").read_text())
    [row] = [row for row in verdict["properties"] if row["name"] == name]
    row["verdict"] = "violated" if row["verdict"] == "holds" else "holds"
    (home / "verdict.json").write_text(json.dumps(verdict))


def tampered_trace(home: Path, event: str, change: tuple[str, str]) -> None:
    """Change the first event of a kind in the trace of a run."""
    lines = (home / "trace.jsonl").read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if event in line and change[0] in line)
    lines[at] = lines[at].replace(*change)
    (home / "trace.jsonl").write_text("".join(lines))


def mirror_dies(home: Path) -> Result:
    """A run in which both processes of a mirror die: what they had not read is yet to come."""
    text = (HOME / "scenarios/files/mirror-crash.yaml").read_text()
    crashes = "".join(f"  - {{at: 14s, crash: hub-west/{number}}}\n" for number in range(2))
    changed = text.replace("name: mirror-crash", "name: mirror-dies")
    path = home / "mirror-dies.yaml"
    path.write_text(changed.replace("settle: 20s", f"{crashes}settle: 8s"))
    return simulate(str(path), variant="hardened")


@pytest.fixture(scope="module")
def shown(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """One analysis of all that these tests need, in the session that runs."""
    home = tmp_path_factory.mktemp("analysis")
    results = [simulate(name, variant=variant, seed=seed) for name, variant, seed in RUNS]
    results.append(mirror_dies(home))
    results.append(simulate(scenario(), seed=1, consumer=consumer_that(shares_with_all)))
    leaving = scenario(timeline=[{"at": "8s", "leave": "group/1"}], settle="20s")
    results.append(simulate(leaving, seed=2, consumer=consumer_that_stays()))
    unheard = scenario(
        timeline=[{"at": "8s", "leave": f"group/{at}"} for at in range(2)], settle="20s"
    )
    results.append(simulate(unheard, seed=3, consumer=consumer_that(does_nothing)))
    places = [
        {"event": "fetching", "partition": "clicks/0-0"},
        {"event": "fetching", "partition": "clicks/7-0"},
        {"event": "fetching", "detail": {"partition": "clicks/0-0"}},
    ]
    results.append(simulate(scenario(never=places, sometimes=places), seed=4))
    for result in results:
        write_run(home / "runs", result)
    tampered = simulate("consumer-crash", variant="hardened", seed=7)
    for number, name in enumerate(("single ownership", "full cover", "work bound")):
        tampered_verdict(write_run(home / f"verdict-{number}", tampered), name)
    of_messages = write_run(home / "verdict-3", simulate("exactly-once", seed=0))
    for name in OF_MESSAGES:
        tampered_verdict(of_messages, name)
    tampered_trace(
        write_run(home / "trace-0", tampered),
        '"fetching"',
        ('"does":"ceases"', '"does":"begins"'),
    )
    sweep = ["sweep", "consumer-crash", "--variants", "documented,hardened", "--seeds", "4"]
    assert run_command([*sweep, "--no-shrink", "--out", str(home / "swept")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        yield analyzed(home, patch, results)


def analyzed(home: Path, patch: pytest.MonkeyPatch, results: list[Result]) -> Shown:
    """Run the command on a folder, and keep what it prints."""
    import io

    out, err = io.StringIO(), io.StringIO()
    patch.setattr("sys.stdout", out)
    patch.setattr("sys.stderr", err)
    code = run_command(["analyze", str(home), "--out", str(home / "out"), "--json"])
    patch.undo()
    assert out.getvalue(), err.getvalue()
    return Shown(code, json.loads(out.getvalue()), err.getvalue(), home / "out", results)


# --- every property a second time ------------------------------------------------------


def test_what_was_tampered_with_is_found_and_nothing_else(shown: Shown) -> None:
    """Four verdicts and a trace; the first run of that name keeps it, others get a number."""
    found = {(row["run"], row["property"]) for row in shown.summary["differences"]}
    name = "consumer-crash-hardened-sim-7"
    traces = {run for run, what in found if what == TRACE}

    assert shown.code == 1
    assert len(traces) == 1
    [changed] = traces
    verdicts = {(run, what) for run, what in found if run != changed}
    coordinated = {"single ownership", "full cover", "work bound"}
    assert {what for _, what in verdicts} == {*coordinated, *OF_MESSAGES}
    assert len(verdicts) == 7
    assert all(run.startswith((name, "exactly-once-hardened-sim-0")) for run, _ in found)


def test_a_difference_is_reported_in_a_sentence(shown: Shown) -> None:
    """Which property, which run, what both say."""
    complaints = shown.complaints.splitlines()

    assert len(
        [line for line in complaints if "comes out as" in line or "sha256" in line]
    ) == len(shown.summary["differences"])
    assert any("full cover was judged violated" in line for line in complaints)


def test_properties_that_hold_and_that_do_not_are_compared(shown: Shown) -> None:
    """Both verdicts of nearly every property are among the runs, so agreement says something."""
    seen: dict[str, set[Verdict]] = {}
    for result in shown.results:
        for finding in result.findings:
            seen.setdefault(finding.claim.name.partition(":")[0], set()).add(finding.verdict)
    both = {name for name, verdicts in seen.items() if len(verdicts) > 1}

    assert both >= {
        *("single ownership", "strict single ownership", "truthful registry", "full cover"),
        *("balance", "consensus", "agreed view", "monotone offsets", "delivery to billing"),
    }
    assert both - set(shown.summary["not_computed"]) <= set(shown.summary["agreed"])


def test_what_is_not_computed_is_reported(shown: Shown) -> None:
    """What faults did is counted by the world, and stands in no trace."""
    assert set(shown.summary["not_computed"]) == {"faults struck"}


# --- messages --------------------------------------------------------------------------


DRAWN = drawn_traces("producer-crash", "mirror-moved-group", number=60)


def no_message_is_new(*arguments: Any) -> int:
    """Where a repeat is taken for a message that comes for the first time."""
    return int(arguments[-1].first)


def nothing_happens(*arguments: Any) -> None:
    """Where an event is overlooked."""


def waits_though_it_is_stored(judge: PunctualityJudge, event: Event) -> None:
    """Where what is stored has to be stored again."""
    detail = event.detail
    if detail["outcome"] == "accepted":
        waiting = judge._waiting.setdefault((event.topic, detail["producer"]), [])
        insort(waiting, (detail["first"], detail["end"], event.t_us))


MISTAKES = (
    ("order", Ledger, "first_new", no_message_is_new),
    ("sane commits", DeliveryJudge, "_reset", nothing_happens),
    ("sane commits", DeliveryJudge, "_opened", nothing_happens),
    ("no starvation", StarvationJudge, "_opened", nothing_happens),
    ("no starvation", StarvationJudge, "_hosting", nothing_happens),
    ("punctual sending", PunctualityJudge, "_sent", waits_though_it_is_stored),
)
"""The property that each violates, and what is done in another way."""


@pytest.fixture(scope="module")
def computed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """What tables say of drawn traces."""
    return computed_of(spark, DRAWN, tmp_path_factory.mktemp("drawn"))


def test_judges_and_tables_say_the_same_of_any_trace(computed: Computed) -> None:
    """The verdict, and the moment from which on it is violated; each comes out each way."""
    recorded = {
        (name, claim): found for name in DRAWN for claim, found in judged(DRAWN[name]).items()
    }

    assert {key: value for key, value in recorded.items() if computed.found[key] != value} == {}
    assert {(claim, verdict) for (_, claim), (verdict, _) in recorded.items()} == {
        (claim, verdict) for claim in OF_MESSAGES for verdict in ("holds", "violated", "unknown")
    }


@pytest.mark.parametrize(("violates", "what", "name", "mistake"), MISTAKES)
def test_a_mistake_of_a_judge_is_a_difference(
    computed: Computed,
    monkeypatch: pytest.MonkeyPatch,
    violates: str,
    what: type,
    name: str,
    mistake: Any,
) -> None:
    """Of the property that it judges, and of no other."""
    monkeypatch.setattr(what, name, mistake)
    differing = {
        claim
        for drawn in DRAWN
        for claim, found in judged(DRAWN[drawn]).items()
        if computed.found[drawn, claim] != found
    }

    assert differing == {violates}


def test_a_mistake_of_the_tables_is_a_difference(computed: Computed) -> None:
    """Here topics that mirrors bring are taken for any other."""
    judgements = {name: judged(DRAWN[name])["order"] for name in DRAWN}

    assert computed.mistaken != {}
    assert any(judgements[name] != found for name, found in computed.mistaken.items())


# --- the rest --------------------------------------------------------------------------


def test_failures_are_counted_over_all_runs_of_a_sweep(shown: Shown) -> None:
    """Not only over those whose traces were kept; and each has its smallest example."""
    [documented] = [
        failure
        for failure in shown.summary["failures"]
        if "documented-floor" not in failure["smallest"] and failure["smallest"]
    ][:1]

    assert documented["of"] >= 4
    assert 0 < documented["per_1000"] <= 1000
    assert documented["interval"][0] < documented["per_1000"] <= documented["interval"][1]
    assert documented["events"] > 0


def test_measures_are_those_of_the_judges(shown: Shown) -> None:
    """What judges count on their way comes out of the tables, too."""
    rows = {(row["run"], row["group"]): row for row in shown.summary["measures"]}
    for result in shown.results:
        stats = result.judgement.stats
        for group, counted in stats["groups"].items():
            row = rows[result.trace.header.run_id, group]
            wanted = {**counted, "zombie_window_us": stats["zombie_window_us"]}
            del wanted["rests"]
            assert {name: row[name] for name in wanted} == wanted
            assert (row["least_moves"] or 0) <= row["moves"]


def table(shown: Shown, name: str) -> list[dict[str, Any]]:
    """The rows of a table that the analysis left."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(shown.out / "tables" / name).to_pylist()
    return rows


def of_runs(shown: Shown, name: str) -> Iterator[tuple[Result, list[dict[str, Any]]]]:
    """Every run, with its rows of a table."""
    rows = table(shown, name)
    for result in shown.results:
        yield result, [row for row in rows if row["run"] == result.trace.header.run_id]


def test_ownership_is_what_a_walk_through_the_run_finds(shown: Shown) -> None:
    """Who fetched what from when to when."""
    for result, rows in of_runs(shown, "intervals"):
        names = ("group", "topic", "partition", "node", "from_us", "to_us")
        assert {tuple(row[name] for name in names) for row in rows} == plain.intervals(
            result.trace
        )


def test_overlaps_and_gaps_last_as_long_as_a_walk_finds(shown: Shown) -> None:
    """Added up by group."""
    seen = set()
    for result, rows in of_runs(shown, "overlaps_and_gaps"):
        lasted: Counter[tuple[str, bool]] = Counter()
        for row in rows:
            lasted[row["group"], row["number"] > 1] += row["to_us"] - row["from_us"]
        assert lasted == plain.overlaps_and_gaps(result.trace)
        seen |= {kind for _, kind in lasted}
    assert seen == {True, False}


def test_moves_are_those_from_rest_to_rest(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is the least number of them that would have done."""
    seen = set()
    for result, rows in of_runs(shown, "moves"):
        made = {row["group"]: (row["moves"], row["least_moves"]) for row in rows}
        wanted = plain.moves(result, monkeypatch)
        assert made == {group: wanted[group] for group in made}
        assert all(wanted[group] == (0, 0) for group in wanted.keys() - made.keys())
        seen |= {made > least for made, least in wanted.values()}
    assert seen == {True, False}


def test_the_herd_is_counted_change_by_change(shown: Shown) -> None:
    """Attempts, reads, members that were woken, and how long until the group was at rest."""
    for result, rows in of_runs(shown, "herd"):
        names = ("attempts", "reads", "woken", "rest_after_us")
        found = {(row["group"], row["t_us"]): tuple(row[name] for name in names) for row in rows}
        assert found == plain.herd(result)


def test_throughput_and_cache_hits_are_those_of_the_events(shown: Shown) -> None:
    """A row a run that has any."""
    for result, rows in of_runs(shown, "throughput"):
        assert sum(row["messages"] for row in rows) == plain.throughput(result.trace)
    shares = set()
    for result, rows in of_runs(shown, "cache"):
        [hits] = [row["cache_hits"] for row in rows] or [None]
        assert hits == (pytest.approx(plain.cache_hits(result.trace)) if hits else None)
        shares.add(hits is None)
    assert shares == {True, False}


# --- messages --------------------------------------------------------------------------


def test_every_promise_is_judged_a_second_time(shown: Shown) -> None:
    """Through mirrors, too; and what is counted is what the judge counts."""
    groups = {(row["run"], row["group"]): row for row in table(shown, "messages")}
    seen: Counter[str] = Counter()
    for result in shown.results:
        for group, account in plain.accounts(result).items():
            wanted = {
                **{name: getattr(account, name) for name in COUNTS},
                "repeated": account.duplicated,
            }
            row = groups.pop((result.trace.header.run_id, group))
            assert {name: row[name] for name in wanted} == wanted
            seen.update(wanted)
    judged = {result.trace.header.run_id for result in shown.results}
    assert not [run for run, _ in groups if run in judged]
    assert all(seen[name] for name in ("lost", "repeated", "unread", "coming", "stored_twice"))


def test_losses_and_repeats_are_reported_by_source_and_by_partition(shown: Shown) -> None:
    """Of a mirror's target, by the producers of its sources."""
    sources, partitions = (
        table(shown, f"messages_by_{what}") for what in ("source", "partition")
    )
    for result in shown.results:
        name = result.trace.header.run_id
        for group, account in plain.accounts(result).items():
            mine = [row for row in sources if (row["run"], row["group"]) == (name, group)]
            for what, numbers in (("lost", account.lost_of), ("repeated", account.repeated_of)):
                counted = ((row["producer"], row[what]) for row in mine if row[what])
                assert tuple(sorted(counted)) == numbers
            assert {
                (row["topic"], row["partition"]): tuple(row[column] for column in SHARE)
                for row in partitions
                if (row["run"], row["group"]) == (name, group)
            } == {
                tuple(share.partition): (
                    share.stored,
                    share.skipped,
                    share.duplicated,
                    share.unread,
                )
                for share in account.shares
            }


def test_lag_is_that_of_the_report_of_a_run(shown: Shown) -> None:
    """Step by step, in every partition; also where a log has lost its end with its host."""
    steps: dict[str, dict[tuple[str, ...], list[tuple[int, int]]]] = {}
    for row in sorted(table(shown, "lags"), key=lambda row: row["t_us"]):
        if row["behind"] == HANDED_ON:
            of_run = steps.setdefault(row["run"], {})
            key = (row["group"], row["topic"], row["partition"])
            of_run.setdefault(key, []).append((row["t_us"], row["lag"]))
    for trace in (result.trace for result in shown.results):
        assert steps.get(trace.header.run_id, {}) == plain.lags_of(trace)
        for (group, *_), _ in plain.lags_of(trace).items():
            [row] = [
                row
                for row in shown.summary["measures"]
                if (row["run"], row["group"]) == (trace.header.run_id, group)
            ]
            assert (row["most_lag"], row["last_lag"]) == plain.lag_together(trace, group)


def test_the_table_of_lags_has_its_schema(shown: Shown) -> None:
    """As it is written down."""
    import pyarrow.parquet as pq

    kinds = {"string": "string", "bigint": "int64"}
    written = {item.name: kinds[item.dataType.simpleString()] for item in LAGS}
    schema = pq.read_table(shown.out / "tables/lags").schema
    assert {item.name: str(item.type) for item in schema} == written


def test_coverage_tells_what_was_interrupted_and_what_never_was(shown: Shown) -> None:
    """Every fault that there was, with every step."""
    faults: dict[str, dict[str, int]] = {}
    for row in shown.summary["coverage"]:
        faults.setdefault(row["fault"], {})[row["step"]] = row["times"]

    assert set(faults) >= {"crash", "expire", "pause"}
    assert all(len(steps) == len(faults["crash"]) for steps in faults.values())
    assert faults["expire"]["waiting"] > 0
    assert faults["expire"]["during fence"] == 0


def test_the_folder_holds_tables(shown: Shown) -> None:
    """Events by run, and what was computed of them."""
    names = {path.name for path in (shown.out / "tables").iterdir()}

    assert names >= {"intervals", "overlaps_and_gaps", "moves", "herd", "zombies", "properties"}
    assert len(list((shown.out / "events").iterdir())) == shown.summary["runs"]


def test_the_page_needs_nothing_but_itself(shown: Shown) -> None:
    """It loads nothing, and holds what the summary says."""
    page = (shown.out / "analyze.html").read_text()
    summary = json.loads((shown.out / "analysis.json").read_text())

    assert "src=" not in page
    assert "href=" not in page
    assert summary["agreed"] == shown.summary["agreed"]
    assert (
        json.loads(page.partition('id="data">')[2].partition("</script>")[0])["agreed"]
        == (summary["agreed"])
    )


# --- when a failure became inevitable --------------------------------------------------

PAGE = HOME / "docs/how-to/analyze.md"
COMMANDS = [line for line in PAGE.read_text().splitlines() if line.startswith("watchkeeper ")]


@pytest.mark.slow
def test_the_page_shows_what_happens(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands run, one after the other, in an empty folder; here with fewer branches.

    The last says that at the violation, if not before, the failure is decided.
    """
    del shown  # its session of Spark serves these, too
    monkeypatch.chdir(tmp_path)
    *runs, once, last = [line.replace("200", "3") for line in COMMANDS]

    assert [run_command([*shlex.split(run)[1:], "--no-pictures"]) for run in runs] == [0, 0]
    assert shlex.split(once)[:3] == shlex.split(last)[:3]
    assert run_command(shlex.split(last)[1:]) == 0
    summary = json.loads((tmp_path / "analysis/analysis.json").read_text())
    curve = summary["inevitable"]
    assert curve["points"][-1]["fail"] == curve["points"][-1]["of"] == 3
    assert curve["points"][0]["events"] == 0
    assert curve["decided"] is not None


PROFILE_TEXT = """
watchkeeper_profile: 1
zookeeper: {simulation: {read_us: 700}}
"""


@pytest.fixture
def run_with_profile(tmp_path: Path) -> Path:
    """The folder of a failing run that was simulated with a profile."""
    profile = tmp_path / "slow.yaml"
    profile.write_text(PROFILE_TEXT)
    result = simulate("session-expiry", variant="kafka_07", seed=0, profile=profile)
    assert result.violated
    return write_run(tmp_path / "runs", result)


@pytest.mark.slow
def test_a_run_with_a_profile_is_branched_with_it(
    shown: Shown, run_with_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused. The profile is kept beside its trace; the last branches are the run."""
    del shown
    monkeypatch.chdir(run_with_profile.parent.parent)
    options = ["--inevitable", run_with_profile.name, "--branches", "3"]

    assert run_command(["analyze", "runs", *options]) == 0
    curve = json.loads(Path("analysis/analysis.json").read_text())["inevitable"]
    assert curve["points"][-1]["fail"] == curve["points"][-1]["of"] == 3


def test_the_profile_of_a_run_is_that_beside_its_trace(run_with_profile: Path) -> None:
    """A branch that keeps all events of the run is the run itself, event for event."""
    run = failing_run(gathered((run_with_profile,)).runs, run_with_profile.name)
    assert run.plan is not None
    trace = read_trace(run_with_profile)
    again = {
        profile: simulate_plan(run.plan, 0, profile=profile, branch=Branch(len(trace), 7)).trace
        for profile in (kept_profile(run), DEFAULT)
    }

    assert [one.fingerprint == trace.fingerprint for one in again.values()] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "profile.yaml is not beside its trace"),
        (PROFILE_TEXT.replace("700", "800"), "profile.yaml is the profile "),
        ("watchkeeper_profile: 1\n", "has no section `zookeeper` or `codecs`"),
    ],
)
def test_a_run_without_its_profile_is_not_branched(
    run_with_profile: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    profile = run_with_profile / "profile.yaml"
    profile.unlink() if text is None else profile.write_text(text)
    command = ["analyze", str(run_with_profile), "--inevitable", run_with_profile.name]

    assert run_command(command) == 4
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("consumer-crash-hardened-sim-1", "was not judged violated"),
        ("consumer-crash-hardened-sim-2", "there is no run"),
    ],
)
def test_what_does_not_fail_has_no_such_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, message: str
) -> None:
    """It is said before Spark is started."""
    write_run(tmp_path, simulate("consumer-crash", variant="hardened", seed=1))

    assert run_command(["analyze", str(tmp_path), "--inevitable", run]) == 4
    assert message in capsys.readouterr().err


# --- what is wrong with what was given -------------------------------------------------


def test_half_a_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark is started; an earlier analysis stays."""
    home = write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    trace_bytes = (home / "trace.jsonl").read_bytes()
    (home / "trace.jsonl").write_bytes(trace_bytes[: len(trace_bytes) // 2])
    kept = tmp_path / "out"
    kept.mkdir()
    (kept / "analysis.json").write_text("{}")

    assert run_command(["analyze", str(tmp_path / "runs"), "--out", str(kept)]) == 4
    assert "is half a trace" in capsys.readouterr().err
    assert (kept / "analysis.json").read_text() == "{}"


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is one that is not there."""
    assert run_command(["analyze", str(tmp_path)]) == 4
    assert "no trace.jsonl is in there" in capsys.readouterr().err
    assert run_command(["analyze", str(tmp_path / "none")]) == 4
    assert "there is no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://localhost:1", "nothing answers at spark://localhost:1"),
        ("lokal", "'lokal' is not a master of Spark"),
    ],
)
def test_a_master_that_is_not_there_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], master: str, message: str
) -> None:
    """In a sentence, and nothing is left behind."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    out = tmp_path / "out"

    assert run_command(["analyze", str(tmp_path), "--master", master, "--out", str(out)]) == 4
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_the_folder_of_a_user_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no analysis is not replaced by one."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))

    assert run_command(["analyze", str(tmp_path), "--out", str(tmp_path / "runs")]) == 4
    assert "is not the folder of an analysis" in capsys.readouterr().err


def test_an_analysis_takes_the_place_of_another_as_a_whole(tmp_path: Path) -> None:
    """Where it fails, and where it was killed between two steps, the earlier one is there."""
    out = tmp_path / "out"
    with replacing(out) as home:
        (home / "analysis.json").write_text("1")
    with pytest.raises(PipelineProblem, match="what was there before is kept"), replacing(out):
        raise OSError(28, "No space left on device")
    assert (out / "analysis.json").read_text() == "1"
    out.rename(tmp_path / ".out-before")
    with pytest.raises(ZeroDivisionError), replacing(out):
        raise ZeroDivisionError
    assert (out / "analysis.json").read_text() == "1"
    with replacing(out) as home:
        (home / "analysis.json").write_text("2")
    assert (out / "analysis.json").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


STRUCK = """
import os, signal, sys
from pathlib import Path
from watchkeeper.pipeline.analysis.store import replacing, write_summary

left = int({left!r})

def strike(event, arguments):
    global left
    if event in {touching!r} or (event == "open" and "w" in str(arguments[1])):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

with replacing(Path({out!r})) as home:
    (home / "tables").mkdir()
    (home / "tables/part-0").write_text("2")
    sys.addaudithook(strike)
    write_summary(home, {{"made": 2}})
"""
TOUCHING = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.truncate")
"""What Python tells of before it changes anything on a disk."""


def made_of(out: Path) -> int:
    """Which analysis is in a folder; it has to be whole."""
    made = json.loads((out / "analysis.json").read_text())["made"]
    assert (out / "tables/part-0").read_text() == str(made)
    return int(made)


def test_a_kill_before_any_step_of_the_replacement_loses_nothing(tmp_path: Path) -> None:
    """Killed before the first thing it changes on disk, the second, and so on until it gets
    through: what comes next finds the one analysis or the other, whole, and keeps it even if
    it fails itself."""
    found = []
    for left in range(50):
        out = tmp_path / str(left) / "out"
        with replacing(out) as home:
            (home / "tables").mkdir()
            (home / "tables/part-0").write_text("1")
            write_summary(home, {"made": 1})
        program = STRUCK.format(left=left, touching=TOUCHING, out=str(out))
        done = subprocess.run([sys.executable, "-P", "-c", program], env=PATHS, check=False)
        with pytest.raises(ZeroDivisionError), replacing(out):
            raise ZeroDivisionError
        found.append(made_of(out))
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert found[0] == 1
    assert found[-1] == 2
    assert found == sorted(found)
    assert len(found) > 6


def test_nothing_comes_between_the_steps_of_a_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or what is whole, and not yet in its place, would be taken for what a kill has left."""
    rename = Path.rename
    counted = []

    def met(path: Path, target: Path) -> Path:
        with pytest.raises(PipelineProblem, match="under way"), replacing(tmp_path / "out"):
            pass
        counted.append(path.name)
        return rename(path, target)

    for made in (1, 2):
        with monkeypatch.context() as patch, replacing(tmp_path / "out") as home:
            write_summary(home, {"made": made})
            patch.setattr(Path, "rename", met)
    assert counted == 2 * ["out", ".out-unfinished"]
    assert json.loads((tmp_path / "out/analysis.json").read_text()) == {"made": 2}


def test_two_analyses_do_not_write_one_folder(tmp_path: Path) -> None:
    """The second gets a message to wait."""
    with (
        replacing(tmp_path / "out"),
        pytest.raises(PipelineProblem, match="another analysis is under way"),
        replacing(tmp_path / "out"),
    ):
        pass


def test_how_many_seeds_find_a_failure() -> None:
    """1 - (1 - p)^n is at least 95 % from there on."""
    for probability in (0.5, 0.05, 0.001):
        number = int(needed(probability))
        assert 1 - (1 - probability) ** number >= 0.95 > 1 - (1 - probability) ** (number - 1)
    assert needed(1) == 1
    assert needed(0) == float("inf")
