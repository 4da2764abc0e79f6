"""Runs are analysed from their traces: every property a second time, measures, coverage.

One analysis serves most of these tests: it has runs that hold and
runs that do not, a sweep, and runs of which a verdict or a trace was tampered with.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import HOME, SOURCE
from tests.support.messages.random_traces import OF_MESSAGES
from tests.support.mutant_consumers import (
    consumer_that,
    consumer_that_stays,
    does_nothing,
    scenario,
    shares_with_all,
)
from tests.support.pipeline import analysis_plain as plain
from tests.support.pipeline.run_folders import failing_run_with_profile, write_run
from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.cli.main import run_command
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.pipeline.analysis.cross_check import TRACE
from watchkeeper.pipeline.analysis.lags import HANDED_ON, LAGS

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


class Shown(NamedTuple):
    """What the command left and printed."""

    code: int
    summary: dict[str, Any]
    complaints: str
    out: Path
    results: list[Result]
    """Of the runs that were not tampered with."""


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
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """One analysis of all that these tests need."""
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


# --- tables --------------------------------------------------------------------------


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

    kinds = {"string": "string", "long": "int64"}
    written = {name: kinds[kind] for name, kind in LAGS.types.items()}
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


@pytest.mark.slow  # a hundred branches
def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run, one after the other, in an empty folder; here with fewer branches.

    The last says that at the violation, if not before, the failure is decided.
    """
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


@pytest.mark.slow  # sixty branches
def test_a_run_with_a_profile_is_branched_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused. The profile is kept beside its trace; the last branches are the run."""
    run = failing_run_with_profile(tmp_path)
    monkeypatch.chdir(tmp_path)
    options = ["--inevitable", run.name, "--branches", "3"]

    assert run_command(["analyze", "runs", *options]) == 0
    curve = json.loads(Path("analysis/analysis.json").read_text())["inevitable"]
    assert curve["points"][-1]["fail"] == curve["points"][-1]["of"] == 3
