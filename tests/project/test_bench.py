"""Each bench, made small, runs and prints what it has to. No time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from bench.control_plane import Unfinished, second_failover

from tests import HOME
from tests.support.browser import needs_browser
from tests.support.live_zookeeper import skip_without_zookeeper
from watchkeeper import simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.sim.engine.latency_profile import DEFAULT

BENCH = HOME / "bench"
COMMANDS = (
    *(
        "agree",
        "analysis",
        "assignors",
        "balancing",
        "broker",
        "broker_08",
        "calibration",
        "charts",
        "codec_sizes",
        "commands",
        "conformance",
        "control_plane",
        "control_plane_mutants",
        "crash_points",
        "decode",
        "explore",
        "fingerprints",
        "gauges",
        "herd",
        "interop",
        "kafka_hostile",
        "kazoo_suite",
        "live",
        "load",
        "log",
        "messages",
    ),
    *(
        "mutants",
        "mutation_score",
        "mutations",
        "newcomer",
        "operations",
        "peers",
        "pages",
        "pipeline",
        "proved",
        "recipes_live",
        "regressions",
        "seeds",
        "soak",
        "storage",
        "terabyte",
        "three_groups_sweep",
        "truncation_rules",
        "verdicts",
        "virtual",
        "wire_differential",
        "wrong_recipes",
    ),
    *("zookeeper_clients", "zookeeper_harness", "zookeeper_hostile", "zookeeper_kill_points"),
    "zookeeper_speed",
)
SMALL = {
    "control_plane": ("--partitions", "100", "--live", "none", "--rounds", "1"),
    "control_plane_mutants": ("--only", "KAFKA", "--seeds", "2"),
    "three_groups_sweep": ["--seeds", "8", "--shrink-time", "0.5", "--jobs", "1"],
    "analysis": ["--millions", "0.005"],
    "assignors": ["--partitions", "2000", "--streams", "7", "--rounds", "1"],
    "balancing": ["--brokers", "2", "--producers", "3", "--keys", "20"],
    "broker": ["--megabytes", "2", "--rounds", "1", "--flush", "500"],
    "broker_08": ["--megabytes", "1", "--rounds", "1"],
    "crash_points": ["--points", "40"],
    "codec_sizes": ["--repeat", "1"],
    "charts": ["--libraries", "own", "--marks", "400", "--repeat", "1", "--steps", "3"],
    "commands": ["--rounds", "1"],
    "decode": ["--messages", "400", "--rounds", "1"],
    "explore": ["--only", "four", "--seconds", "1"],
    "fingerprints": [
        *("--pythons", ".".join(map(str, sys.version_info[:2])), "--hash-seeds", "0,1"),
        *("--scenarios", "consumer-crash", "--variants", "hardened,kafka_08", "--seeds", "1"),
    ],
    "gauges": ["--repeat", "1", "--calls", "10"],
    "herd": ["--members", "3,5"],
    "kafka_hostile": ["--frames", "2000", "--live", "100"],
    "live": ["--sizes", "2x8", "--repeat", "1"],
    "load": ["--messages", "4000", "--rounds", "1"],
    "log": ["--megabytes", "0.2", "--rounds", "1"],
    "messages": ["--millions", "0.1", "--rounds", "1"],
    "mutation_score": [
        *("--only", "actor/retry,group/claims:release_lost:negation:1"),
        *("--sample", "3", "--killers", "^steady-join|^no fault|^join, settled"),
    ],
    "mutations": ["--mutations", "3000"],
    "operations": ["--operations", "60", "--rounds", "1"],
    "pages": ["--scenario", "consumer-crash", "--repeat", "1", "--steps", "5"],
    "pipeline": ["--seconds", "1"],
    "proved": ["--seeds", "8", "--cases", "none/0.7,lost-reply/0.7,crash-and-restart/0.8"],
    "regressions": ["--seeds", "3", "--class", "new-groups,roles", "--jobs", "2"],
    "seeds": ["--seeds", "2", "--rounds", "1"],
    "storage": ["--rounds", "1", "--mib", "8"],
    "terabyte": ["--part", "0.0005", "--partitions", "3"],
    "soak": ["--kills", "6", "--a-round", "3", "--settle", "10"],
    "zookeeper_harness": ["--rounds", "1", "--servers", "1"],
    "mutants": ["--seeds", "3", "--mutants", "rounds-down,half-a-batch"],
}


def bench(name: str, *arguments: str, code: int = 0) -> str:
    """What a bench prints, run as a person runs it: from any folder, by its path."""
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        cwd=BENCH.anchor,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def figures(name: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a small run of a bench says, as JSON."""
    report: dict[str, Any] = json.loads(
        bench(name, *SMALL[name], *arguments, "--json", code=code)
    )
    return report


def test_every_command_is_known_here() -> None:
    """A bench that is added is run here and stands in the README."""
    files = {path.stem for path in BENCH.glob("*.py")}
    page = (BENCH / "README.md").read_text()

    assert files == set(COMMANDS)
    assert [name for name in COMMANDS if f"`{name}.py`" not in page] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str) -> None:
    """`--help` says what it does and how."""
    report = bench(name, "--help")

    assert "usage" in report
    assert "--json" in report


@pytest.mark.slow
def test_control_plane() -> None:
    """A failover of both versions, with what it cost."""
    found = figures("control_plane")

    assert found["100"]["hardened"]["round_trips"] < found["100"]["kafka_08"]["round_trips"]


def test_a_failover_that_does_not_end_is_no_figure() -> None:
    """Neither without a second controller, nor with one whose failover goes on at the end."""
    trace = simulate("controller-crash", variant="hardened", seed=0).trace
    [_, second] = [event.seq for event in trace.of_kind(EventKind.CONTROLLER_ELECTED)]

    assert second_failover(trace).seconds > 0
    for end, message in ((second, "no second controller"), (second + 1, "had not ended after")):
        with pytest.raises(Unfinished, match=message):
            second_failover(Trace(trace.header, trace.rows[:end]))


@pytest.mark.slow
def test_control_plane_searches_as_far_as_the_time_goes() -> None:
    """It says where it stopped, and goes on to no larger bounds."""
    found = figures("control_plane", "--only-search", "--search-minutes", "0.001")

    [(name, search)] = [(name, one) for name, one in found.items() if name.startswith("search")]
    assert name == "search, 2 replicas, 2 records, logs of 2, 3 epochs"
    assert search["end"].endswith("s were over")
    assert search["states"] > 0
    assert search["counterexamples"] == {}


@pytest.mark.slow
def test_control_plane_mutants() -> None:
    """All bugs are caught, some by the property that they are about."""
    found = figures("control_plane_mutants")

    bugs = {name: caught for name, caught in found.items() if name.startswith("KAFKA")}
    assert len(bugs) == 32
    assert None not in bugs.values()

    expected = {
        "KAFKA-705": "leaving brokers hand over",
        "KAFKA-708": "leader in sync",
        "KAFKA-758": "committed in the ISR",
    }
    assert {name: found[name]["properties"][0] for name in expected} == expected


@pytest.mark.slow
def test_mutants() -> None:
    """A mutant that every seed catches, and one that takes a search."""
    mutants = figures("mutants")["mutants"]

    assert [mutant["mutant"] for mutant in mutants] == ["rounds-down", "half-a-batch"]
    assert [mutant["seeds"] for mutant in mutants] == [3, 0]
    assert [mutant["caught_by"] for mutant in mutants] == ["full cover", "monotone offsets"]


@pytest.mark.slow
def test_proved() -> None:
    """What a search proves holds in each run, and is as the page of findings says."""
    page = (BENCH.parent / "docs" / "findings.md").read_text()
    cases = figures("proved")["cases"]

    assert [case["case"] for case in cases] == SMALL["proved"][-1].split(",")
    for case in cases:
        assert f"| {case['states']:,} |" in page
        assert len(case["proved"]) == 8
        assert case["runs"]["seeds"] == 8
        assert case["runs"]["struck"] > 0
        assert case["runs"]["broken"] == []


@pytest.mark.slow
def test_proved_tells_of_runs_that_violate_it() -> None:
    """What was proved of one version is violated by the runs of another."""
    [case] = figures("proved", "--cases", "none/0.7", "--simulated", "documented", code=1)[
        "cases"
    ]

    assert "truthful registry" in {row["what"] for row in case["runs"]["broken"]}


def test_regressions() -> None:
    """As many runs as seeds, of the classes that are named; a name that is none is refused."""
    classes = figures("regressions")["classes"]

    assert list(classes) == ["new-groups", "roles"]
    assert all(one["seeds"] == one["shown"] == 3 for one in classes.values())
    assert all(one["wrong"] == {} for one in classes.values())
    bench("regressions", "--class", "nothing", code=2)


@pytest.mark.slow
def test_seeds() -> None:
    """The chaos run, each stage, and the empty runs; every one has its bar."""
    report = figures("seeds")

    names = [run["name"] for run in report["runs"]]
    assert names[0] == "chaos"
    assert [name.partition(",")[0] for name in names[1:]] == ["empty"] * 3
    assert set(report["runs"][0]["ms"]) == {"simulate", "judge", "fingerprint", "total"}
    assert [(bar["bar"], bar["unit"]) for bar in report["bars"]] == [
        (50.0, "seeds/s"),
        *[(2.0, "ms a seed")] * 3,
    ]
    assert {"cpu", "python", "cores"} <= set(report["machine"])


@pytest.mark.slow
def test_kafka_hostile() -> None:
    """Mutated frames break neither the codec nor a broker, and most of them are refused."""
    found = figures("kafka_hostile")

    outcomes = {(at, what): int(count.replace(",", "")) for at, what, count in found["rows"]}
    assert found["broken"] == []
    assert outcomes["codec", "a value"] + outcomes["codec", "MalformedRequest"] > 1_500
    assert outcomes["broker", "answered"] > 10 < outcomes["broker", "closed"]


@pytest.mark.slow
def test_broker_08() -> None:
    """Appends of both codecs and with both acks, and fetches of two sizes, each with its bar."""
    found = figures("broker_08")

    runs = {(run["what"], run["set"], run["flush"]) for run in found["runs"]}
    assert len(runs) == 6
    assert {run["who"] for run in found["runs"]} == {
        "broker",
        "plain writes",
        "plain sendfile",
    }


@pytest.mark.slow
def test_interop() -> None:
    """Without a client that has to be installed, the rows of this project's own commands pass."""
    found = json.loads(bench("interop", "--only", "", "--json"))

    rows = {row["action"]: row["word"] for row in found["rows"]}
    assert set(rows.values()) == {"passed"}
    assert "a client of 0.7 is recognized in the log" in rows


@pytest.mark.slow
def test_newcomer() -> None:
    """The tasks of a newcomer work in this environment, which has every extra."""
    commands = str(Path(sys.executable).parent)
    found = json.loads(bench("newcomer", "--bin", commands, "--only", "tasks", "--json"))

    assert [row for row in found["rows"] if row["problem"]] == []
    assert len(found["rows"]) == 11, "all but the installation"


@pytest.mark.slow
def test_balancing() -> None:
    """What a balancer saves and what it costs, and what ZooKeeper costs and gives."""
    four, any_partition, by_key = figures("balancing")["runs"]

    assert [row["connections"] for row in (four, any_partition, by_key)] == [3, 6, 6]
    assert four["requested"] == 0 < any_partition["requested"]
    assert four["load"] > 1.2 > any_partition["load"]
    assert four["new_load"] == 0 < 0.8 < any_partition["new_load"]
    assert four["stuck"] < by_key["stuck"] == 1
    assert four["moved"] is any_partition["disordered"] is None
    assert 0.3 < by_key["moved"] < 1
    assert four["disordered"][0] > 0 == by_key["disordered"][0]
    assert sum(four["disordered"]) > by_key["disordered"][1]


@pytest.mark.slow
def test_pipeline() -> None:
    """Every runner comes to the same rows, or the bench stops; and what each of them took."""
    skip_without_zookeeper()
    report = figures("pipeline")

    assert list(report["runners"]) == ["one process", "pool of 2", "Spark, local[2]"]
    assert all(row["runs"] > 1 and row["wall_s"] > 0 for row in report["runners"].values())
    assert [(bar["direction"], bar["bar"]) for bar in report["bars"]] == [
        ("at least", 1.8),
        ("at most", 0.15),
        ("at most", 0.15),
    ]


@pytest.mark.slow
def test_analysis() -> None:
    """Both computations agree, or the bench stops; one size has nothing to be held against."""
    skip_without_zookeeper()
    report = figures("analysis")

    assert [row["engine"] for row in report["sizes"]] == ["duckdb", "spark"]
    for row in report["sizes"]:
        assert row["events"] >= 5_000
        assert row["runs"] > 1
        assert row["overlaps"] > 0
    assert [(bar["direction"], bar["bar"]) for bar in report["bars"]] == 2 * [("at most", 6.0)]


@pytest.mark.slow
def test_load() -> None:
    """Every contender loads the logs of every codec; the bench stops if a table is not full."""
    skip_without_zookeeper()
    report = figures("load")

    codecs, contenders = (
        ("none", "gzip", "snappy"),
        ("process", "pool", "spark", "source", "read"),
    )
    assert [(run["codec"], run["by"]) for run in report["runs"]] == [
        (codec, contender) for codec in codecs for contender in contenders
    ]
    assert all(run["per_second"]["best"] > 0 for run in report["runs"])
    assert all(run["times_cat"] > 1 for run in report["runs"])
    assert [(bar["what"], bar["bar"]) for bar in report["bars"]] == [
        *(("spark, plain", 1e6), ("source, plain", 1e6)),
        *(("spark, gzip", 1e6), ("source, gzip", 1e6)),
        *(("spark, snappy", 1e6), ("source, snappy", 1e6)),
    ]


@pytest.mark.slow
def test_operations() -> None:
    """Every kind of work, for one and three servers and one client and twenty."""
    report = figures("operations", "--clock", "wall")

    assert {(run["work"], run["servers"], run["clients"]) for run in report["runs"]} == {
        (work, servers, clients)
        for work in ("get", "set", "create", "mixed")
        for servers in (1, 3)
        for clients in (1, 20)
    }
    assert all(run["simpy_events_an_operation"] > 1 for run in report["runs"])
    assert [bar["bar"] for bar in report["bars"]] == [30_000.0] * 4


def test_decode() -> None:
    """Every codec of 0.7 and of 0.8; beside kafka-python if that is installed."""
    report = figures("decode")

    ours = {
        (run["format"], run["codec"]) for run in report["runs"] if run["what"] != "kafka-python"
    }
    codecs = ("none", "gzip", "snappy")
    assert ours == {
        *((form, codec) for form in ("0.7", "0.8") for codec in codecs),
        ("0.8", "lz4"),
        ("0.7, magic 0", "none"),
        ("0.7, of many sizes", "none"),
        ("0.8, keys", "none"),
    }
    assert report["bars"][0]["bar"] == 800_000
    assert len(report["bars"]) == (5 if find_spec("kafka") else 1)


@pytest.mark.slow
def test_mutation_score() -> None:
    """A row for each module, the verdict on each mutant, and the bar."""
    report = figures("mutation_score", code=1)

    judged = {row["mutant"]: row["kills"].keys() for row in report["mutants"]}
    assert len(judged) == 4
    assert judged["group/claims:release_lost:negation:1"] >= {"simulation", "search", "tests"}
    assert [(bar["direction"], bar["bar"]) for bar in report["bars"]] == [("at least", 90.0)]
    [alone] = json.loads(
        bench(
            "mutation_score",
            *("--only", "group/claims:release_lost:negation:1", "--by", "tests", "--json"),
            code=1,
        )
    )["mutants"]
    assert alone["kills"].keys() == {"tests"}, "the tests import the mutant, too"


@pytest.mark.slow
def test_mutations() -> None:
    """Whatever is read gives values and errors that have names, and nothing else."""
    report = figures("mutations")

    outcomes = {run["read_as"]: run["outcomes"] for run in report["runs"]}
    assert len(outcomes) == 11
    assert all(outcome["a value"] for outcome in outcomes.values())
    assert not any("wrong" in outcome for outcome in outcomes.values())
    assert {"InvalidMessage", "InvalidMessageSize", "DecompressedTooLarge"} <= set(
        outcomes["0.7, consumed"]
    )
    assert [bar["verdict"] for bar in report["bars"]] == ["met", "met"]


MUTANTS = {
    "an error without a name": ("codecs.CorruptCompression = ValueError", "ValueError: "),
    "no limit": (
        "gzip = codecs.CODECS[1]; "
        "codecs.CODECS[1] = (gzip[0], lambda data, limit, where: gzip[1](data, 10**9, where))",
        " bytes of memory for ",
    ),
    "no end": (
        "mutations.LONGEST_S = 0.2; "
        "mutations.recover = lambda data: all(not n for n in iter(int, 1))",
        "0.7, recovered TooLong",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutations_find_what_is_wrong(mutant: str) -> None:
    """The bench can fail: with a safeguard gone it does, and shows the bytes that did it."""
    patch, shown = MUTANTS[mutant]
    program = (
        f"import sys; sys.path.insert(0, {str(BENCH)!r}); import mutations\n"
        f"from watchkeeper.model.log.format import codecs; {patch}\n"
        "sys.exit(mutations.main(['--mutations', '400']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=BENCH, check=False
    )

    assert done.returncode == 1, done.stderr
    assert "NOT MET" in done.stdout
    assert shown in done.stdout


@pytest.mark.slow
def test_herd(tmp_path: Path) -> None:
    """A table and a plot; members read at least the minimum, and more the more they are."""
    report = figures("herd", "--out", str(tmp_path))

    three, five = report["runs"]
    assert (three["members"], five["members"]) == (3, 5)
    assert three["verdict"] == five["verdict"] == "holds"
    assert three["reads"] >= three["minimum"]
    assert five["reads"] > three["reads"]
    assert five["to_rest_ms"] > 0
    assert (tmp_path / "herd.png").read_bytes().startswith(b"\x89PNG")


def test_assignors() -> None:
    """Every assignor on every input; a bar for each assignor."""
    report = figures("assignors")

    assert len(report["runs"]) == 5 * 2 * 2
    assert [bar["bar"] for bar in report["bars"]] == [1.0] * 5


@pytest.mark.slow
def test_three_groups_sweep() -> None:
    """A few runs: each kind of failure once for all groups, and the smallest so far of each."""
    report = figures("three_groups_sweep")
    found = {failure["signature"] for failure in report["failures"]}

    assert 1 <= len(found) <= 6
    assert not any(
        name in signature for signature in found for name in ("billing", "search", "clicks")
    )
    assert all(failure["smallest"] is not None for failure in report["failures"])


@pytest.mark.slow
@pytest.mark.parametrize("zookeeper", ["java", "python"])
def test_live(zookeeper: str) -> None:
    """Every contender is clocked, and has requested at least what the floor says."""
    if zookeeper == "java":
        skip_without_zookeeper()
    report = figures("live", "--zookeeper", zookeeper)

    runs = {run["contender"]: run for run in report["runs"]}
    assert set(runs) == {"hardened", "kafka_08", "recipe 0.2", "recipe 0"}
    assert [run["failures"] for run in runs.values()] == [[]] * 4
    (hardened,), (kafka_08,) = runs["hardened"]["joins"], runs["kafka_08"]["joins"]
    assert hardened["cost"]["operations"] >= hardened["floor"]
    assert kafka_08["cost"]["operations"] >= kafka_08["floor"]
    assert min(hardened["cost"]["trips"], kafka_08["cost"]["trips"]) >= 5
    assert runs["recipe 0.2"]["joins"][0]["seconds"] > 0.2
    assert all(run["joins"][0]["change"]["moved"] >= 2 for run in runs.values())
    assert len(report["bars"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("zookeeper", ["java", "python"])
def test_soak(zookeeper: str) -> None:
    """Members and servers are killed in both layouts, and nothing is amiss."""
    if zookeeper == "java":
        skip_without_zookeeper()
    report = figures("soak", "--zookeeper", zookeeper)

    assert [row["wrong"] for row in report["rounds"]] == [[], []]
    assert [row["layout"] for row in report["rounds"]] == ["0.7", "0.8"]
    assert [sum(row["kills"].values()) for row in report["rounds"]] == [3, 3]
    assert [bar["verdict"] for bar in report["bars"]] == ["met", "met"]


@pytest.mark.slow
def test_zookeeper_harness() -> None:
    """Each harness that can run passes the twenty tests."""
    report = figures("zookeeper_harness")

    assert report["contenders"]
    for contender in report["contenders"]:
        assert contender["outcome"].startswith("20 passed")
        assert 0 < contender["first_s"][0] < contender["end_s"][0]


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["files", "log"])
def test_storage(subject: str, tmp_path: Path) -> None:
    """Every pattern is done and simulated; nothing is left in the folder."""
    report = figures("storage", "--subject", subject, "--folder", str(tmp_path))

    assert len(report["runs"]) == len(report["bars"]) == 11
    assert all(run["real"] > 0 and run["simulated"] > 0 for run in report["runs"])
    assert {bar["bar"] for bar in report["bars"]} == {25.0}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_terabyte() -> None:
    """A part of the day; all of it appended and sent, from memory."""
    report = figures("terabyte")

    assert report["virtual time"] == pytest.approx(24 * 0.0005, rel=0.01)
    assert report["appended and sent"] == pytest.approx(0.5)
    assert report["read from the disk"] == 0
    assert report["bars"][0]["bar"] == 300.0


@pytest.mark.slow
def test_crash_points() -> None:
    """Every log keeps what it promised; processes were killed at all that there is."""
    report = figures("crash_points")

    crashes = report["crashes"]
    assert [crash["wrong"] for crash in crashes] == [""] * 40
    assert {crash["target"] for crash in crashes} == {
        *("append", "flush", "roll", "delete", "recovery", "by the clock")
    }
    assert any(crash["lost_bytes"] for crash in crashes)
    assert any(crash["cut_bytes"] for crash in crashes)
    assert any(crash["readable_bytes"] for crash in crashes)
    assert [bar["verdict"] for bar in report["bars"]] == ["met", "met"]


@pytest.mark.parametrize(
    ("mutant", "broken"),
    [
        ("short-write-again", {"flushed is kept", "Damaged"}),
        ("recovers-when-clean", {"entries are whole"}),
        ("close-without-flush", {"flushed is kept"}),
    ],
)
@pytest.mark.slow
def test_crash_points_of_a_mutant(mutant: str, broken: set[str]) -> None:
    """Crashes bring it to light."""
    report = json.loads(
        bench("crash_points", "--points", "100", "--mutant", mutant, "--json", code=1)
    )

    wrong = " ".join(crash["wrong"] for crash in report["crashes"])
    assert any(name in wrong for name in broken)
    assert report["bars"][1]["verdict"] == "NOT MET"


def test_log() -> None:
    """Sets of three sizes, and mixed ones, are appended; what is there is read and sent."""
    report = figures("log")

    assert [(run["what"], run["messages_a_set"]) for run in report["runs"]] == [
        *[("append", size) for size in (1, 20, 200, 200, 200, 200)],
        *[("read", 200), ("send", 200)],
    ]
    assert all(run["megabytes_per_second"]["best"] > 0 for run in report["runs"])
    assert [bar["unit"] for bar in report["bars"]] == ["of plain", "of plain", "MB/s"]


def test_gauges() -> None:
    """What is counted, and each question to the kernel, has its price."""
    report = figures("gauges")

    assert {what.partition(",")[0].split()[0] for what in report if "," in what} == {
        *("append", "send", "look"),
    }
    assert all(cost > 0 for what, cost in report.items() if "," in what)


@pytest.mark.slow
@needs_browser
def test_pages() -> None:
    """A page has a size, a time until it is drawn, and frames."""
    report = figures("pages")

    for page in ("spacetime.html", "ownership.html"):
        assert all(report[page][name] > 0 for name in ("bytes", "load_ms", "frame_ms"))


@pytest.mark.slow
@needs_browser
def test_charts() -> None:
    """Our own page draws under its policy, follows the scheme, and breaks no rule."""
    own = figures("charts")["own"]

    [page] = own["pages"]
    assert page["marks"] == 400
    assert all(page[name] > 0 for name in ("size_bytes", "drawn_ms", "frame_ms"))
    assert own["draws_under_policy"]
    assert own["follows_dark"]
    assert (own["complaints"], own["requests"], own["install_bytes"]) == ([], 0, 0)


@pytest.mark.slow
def test_a_chart_library_that_is_not_known() -> None:
    """The sentence names those that are."""
    assert bench("charts", "--libraries", "d3", code=2) == ""


@pytest.mark.slow
def test_commands() -> None:
    """Each command is a process that takes some time of a core."""
    report = figures("commands")

    assert all(report[name][0] > 0 for name in ("help", "scenarios", "run"))


def test_codec_sizes() -> None:
    """The default of a simulation is what the codecs make of the messages of live producers."""
    report = figures("codec_sizes")

    for name, default in (("gzip", DEFAULT.gzip), ("snappy", DEFAULT.snappy)):
        sizes = ("fixed_bytes", "message_bytes_per_1000", "payload_bytes_per_1000")
        for size in sizes:
            assert report[name][size] == pytest.approx(getattr(default, size), rel=0.2)
        assert report[name]["error_percent"] < 25


def test_fingerprints() -> None:
    """One fingerprint for each run under both hash seeds; a refused layout is said to be."""
    report = figures("fingerprints")

    assert report["different"] == []
    assert set(report["fingerprints"]) == {
        "consumer-crash/hardened/0",
        "consumer-crash/kafka_08/0",
    }
    assert all(len(digest) == 64 for digest in report["fingerprints"].values())


def test_fingerprints_of_no_python(tmp_path: Path) -> None:
    """A version that is not there is named, and nothing to compare with is no agreement."""
    done = subprocess.run(
        [sys.executable, str(BENCH / "fingerprints.py"), "--pythons", "3.99"],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=False,
    )

    assert done.returncode == 2
    assert "Python 3.99 is not installed here" in done.stderr


def test_the_environments_that_are_ready(tmp_path: Path) -> None:
    """This very Python is ready; another would have to be made."""
    here = ".".join(map(str, sys.version_info[:2]))
    report = json.loads(
        bench("fingerprints", "--list", "--pythons", f"{here},3.99", "--cache", str(tmp_path))
    )

    assert report == {here: sys.executable}


def test_verdicts_before_and_after(tmp_path: Path) -> None:
    """The same runs agree; a verdict that moved is named and ends with 1; no file ends with 2."""
    file = tmp_path / "before.json"
    small = ("--scenarios", "consumer-crash", "--seeds", "2")
    assert bench("verdicts", *small, "--write", str(file)).startswith("2 runs written")
    report = json.loads(bench("verdicts", "--against", str(file), "--json"))
    assert report["verdict"] == report["fingerprint"] == []

    runs = json.loads(file.read_text())
    file.write_text(json.dumps([{**runs[0], "verdict": "violated"}, runs[1]]))
    report = json.loads(bench("verdicts", "--against", str(file), "--json", code=1))
    assert report["verdict"] == ["consumer-crash/0"]
    assert report["fingerprint"] == []

    assert bench("verdicts", "--against", str(tmp_path / "none.json"), code=2) == ""


@pytest.mark.parametrize("name", ["assignors", "operations"])
def test_what_a_person_sees(name: str) -> None:
    """A table, the bars with their verdicts, and the machine."""
    report = bench(name, *SMALL[name])

    assert "cores, CPython" in report
    assert any(line.startswith("bar ") for line in report.splitlines())
    assert any(line.endswith((" met", "NOT MET")) for line in report.splitlines())
