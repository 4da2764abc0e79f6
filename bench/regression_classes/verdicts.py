"""Verdicts: failure signatures, run folders, searches that begin settled, known limits.

Classes: `signatures`, `folders`, `settled`, `limits`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import yaml
from bench.regression_classes.outcome import Outcome, RegressionClass
from bench.regression_classes.runs import SEEDS, Fields, ms, run, stored_cluster

from watchkeeper import Result, simulate
from watchkeeper.analyze.runs import gathered
from watchkeeper.api import folder
from watchkeeper.api.run_files import fill
from watchkeeper.cli.main import run_command
from watchkeeper.console.exit import USAGE
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.judgement.signature import signatures_of
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.paths import Layout
from watchkeeper.model.trace.trace import parse
from watchkeeper.pipeline.sweeps.chunk import OutOfTime
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.scenarios import from_text
from watchkeeper.sweep.shrink import Shrinking

LETTERS = "bcdfghjklmnpqrstvwxz"
"""Names are drawn of these: no word of a signature has no vowel."""

# --- small groups that make mistakes ---------------------------------------------------------

MISTAKES = ("stale-memory", "gives-up", "kafka-265-deaf")
"""The mutants of the class `signatures`."""


def _word(dice: Random) -> str:
    return "".join(dice.choice(LETTERS) for _ in range(dice.randint(4, 8)))


def _restless_groups(dice: Random, variants: Sequence[str]) -> Fields:
    """A group for each variant, with drawn names and faults."""
    names = sorted({_word(dice) for _ in range(2 * len(variants) + 1)})
    groups, topics = names[: len(variants)], names[len(variants) :][:2]
    timeline: list[Fields] = [{"at": "0s", "produce": topics[0], "rate": "50/s", "size": "100B"}]
    for _ in range(dice.randint(2, 4)):
        member = f"{dice.choice(groups)}/{dice.randrange(2)}"
        verb = dice.choice(("expire", "disconnect", "pause"))
        lasts = {} if verb == "expire" else {"for": ms(dice.randrange(100, 1_500))}
        timeline.append({"at": ms(dice.randrange(3_000, 9_000)), verb: member, **lasts})
    cluster = {
        "zookeeper": {"servers": 1},
        "brokers": 2,
        "topics": {topic: {"partitions_per_broker": 2} for topic in topics},
    }
    config = {"zookeeper.session.timeout.ms": 2_000, "rebalance.backoff.ms": 200}
    return {
        "name": "drawn",
        "about": "a drawn scenario",
        "clusters": {"main": cluster},
        "groups": {
            group: {
                "variant": variant,
                "consumers": 2,
                "apart": ms(dice.choice((0, 0, 200))),
                "streams": {dice.choice(topics): 1},
                "config": config,
            }
            for group, variant in zip(groups, variants, strict=True)
        },
        "timeline": timeline,
        "settle": "12s",
    }


# --- signatures ----------------------------------------------------------------------------


def draw_signatures(dice: Random) -> Outcome:
    """Draw groups with mistakes, name them anew, and shrink some of their failures."""
    fields = _restless_groups(dice, [dice.choice(MISTAKES) for _ in range(dice.randint(1, 3))])
    result = run(dice, fields)
    found = signatures_of(result.findings)
    wrong = [*signatures_wrong(result, found), *_renamed_wrong(dice, fields, result, found)]
    if found and dice.random() < 0.2:
        wrong += _shrinking_wrong(fields, result.seed, found[0], dice.randint(1, 6))
    return Outcome(tuple(wrong), len(found), kinds=found)


def signatures_wrong(result: Result, found: Sequence[str]) -> Iterator[str]:
    """Signatures that name what differs between runs, or too many of them."""
    names = {*result.scenario.document.data["groups"]}
    names |= {*result.scenario.document.data["clusters"]["main"]["topics"]}
    for one in found:
        if re.search(r"\d", one) or any(name in one for name in names):
            yield f"a signature names what differs: {one}"
    violated = [one for one in result.findings if one.verdict is Verdict.VIOLATED and one.counts]
    if len(found) > len({(one.claim.base, one.shape) for one in violated}):
        yield f"{len(found)} signatures of {len(violated)} violated properties"
    if bool(found) != bool(result.violated):
        yield f"{result.violated} violated, signatures {found}"


def _renamed_wrong(
    dice: Random, fields: Fields, result: Result, found: Sequence[str]
) -> Iterator[str]:
    """The same run with other names of groups and topics, in the same order."""
    old = [*fields["groups"], *fields["clusters"]["main"]["topics"]]
    new_names = sorted({_word(dice) + "z" for _ in range(99)})
    new = dict(zip(sorted(old), new_names[: len(old)], strict=True))
    pattern = re.compile("|".join(sorted(old, key=len, reverse=True)))

    def renamed(text: str) -> str:
        return pattern.sub(lambda match: new[match[0]], text)

    plan = from_text("renamed.yaml", renamed(result.scenario.text)).plan("hardened")
    lines = [renamed(line.decode()).encode() for line in result.trace.lines()]
    again = judge(plan, parse(lines, name="renamed"), result.effects)
    if sorted(signatures_of(again.findings)) != sorted(found):
        yield f"with other names: {signatures_of(again.findings)}, not {found}"


def _shrinking_wrong(fields: Fields, seed: int, signature: str, budget: int) -> Iterator[str]:
    """A search for a smaller scenario that ends after a number of runs, and one without time."""

    def end_after(runs: int) -> None:
        if runs >= budget:
            raise OutOfTime(f"after {runs} runs")

    cell = Cell(0, (), from_text("drawn.yaml", yaml.safe_dump(fields)).plan("hardened"), None)
    search = Shrinking(cell, signature, seed, dict(fields), inf, end_after)
    search.go()
    if search.runs > budget:
        yield f"a search takes {search.runs} runs, not {budget}"
    smallest = simulate(search.fields, seed=search.seed)
    if signature not in signatures_of(smallest.findings):
        yield f"the smallest scenario does not fail: {signature}"
    late = Shrinking(cell, signature, seed, dict(fields), -inf, lambda runs: None)
    late.go()
    if late.runs or late.complete:
        yield f"a search without time takes {late.runs} runs"


# --- folders -------------------------------------------------------------------------------

PROFILES = (None, "watchkeeper_profile: 1\nzookeeper: {simulation: {read_us: 90}}\n")
NEEDS_EFFECTS = ("faults struck", "progress")
"""Properties whose judges need what the timeline did, which no trace holds."""


def draw_folders(dice: Random) -> Outcome:
    """Draw a run, leave its folder, and judge it again from there in another directory."""
    fields = _restless_groups(dice, [dice.choice(("hardened", *MISTAKES))])
    if dice.random() < 0.4:
        fields["clusters"] = stored_cluster(1, 2, topic=_word(dice))
        [topic] = fields["clusters"]["main"]["topics"]
        for group in fields["groups"].values():
            group["streams"] = {topic: 1}
        fields["timeline"] = [
            {"at": "1s", "produce": topic, "rate": "100/s", "size": "100B", "for": "4s"},
            *fields["timeline"][1:],
        ]
    profile = dice.choice(PROFILES)
    with TemporaryDirectory() as given:
        here, there = Path(given, "here"), Path(given, "there")
        here.mkdir()
        there.mkdir()
        return _folder_outcome(dice, fields, profile, here, there)


def _folder_outcome(
    dice: Random, fields: Fields, profile: str | None, here: Path, there: Path
) -> Outcome:
    with chdir(here):
        Path("mine.yaml").write_text(yaml.safe_dump(fields))
        if profile is not None:
            Path("slow.yaml").write_text(profile)
        took = None if profile is None else "slow.yaml"
        result = simulate("mine.yaml", seed=dice.randrange(SEEDS), profile=took)
        Path("out").mkdir()
        fill(Path("out"), result, pictures=False)
        Path("mine.yaml").write_text("name: another\n")
    with chdir(there):
        wrong = tuple(folder_wrong(result, Path("..", "here", "out")))
    return Outcome(wrong, len(result.findings))


def folder_wrong(result: Result, home: Path) -> Iterator[str]:
    """What a run's folder says otherwise than the run."""
    [found] = gathered((home,)).runs
    if found.plan is None:
        yield f"no plan: {found.why_no_plan}"
        return
    if found.plan != result.plan:
        yield "the plan is another one"
    trace = folder.read_trace(home)
    if trace.fingerprint != result.fingerprint:
        yield "the trace is another one"
    if bool(found.header.profile) != (home / folder.PROFILE).exists():
        yield "the latency profile is not in the folder"
    again = {one.claim.name: one for one in judge(found.plan, trace, ()).findings}
    for one in result.findings:
        if one.claim.name not in NEEDS_EFFECTS and not _is_same(one, again.get(one.claim.name)):
            yield f"{one.claim.name}: {again.get(one.claim.name)}, not {one.evidence}"
    if {one.property for one in found.recorded} != {one.claim.name for one in result.findings}:
        yield "the recorded verdicts are of other properties"


def _is_same(one: Finding, other: Finding | None) -> bool:
    return other is not None and (one.verdict, one.evidence) == (other.verdict, other.evidence)


# --- searches that begin settled -----------------------------------------------------------

SETTLED_STATES = 150
"""Enough to see how a search begins."""
MIXES = (
    *(("documented_ceil", "documented"), ("documented", "documented_ceil")) * 4,
    *(("hardened", "documented"), ("documented_ceil", "hardened"), ("hardened", "kafka_07")),
)
"""Variants in one group; those that round shares differently never agree on them."""
VARIANTS = ("documented", "documented_ceil", "kafka_07", "kafka_08", "hardened")
LAYOUTS: tuple[Layout, ...] = ("0.7", "0.8")
SMALL_FAULTS = ("crash", "expire", "disconnect", "lost_reply", "lost_request")


def draw_settled(dice: Random) -> Outcome:
    """Draw a small plan and variants or mutants, and search it from its settled state."""
    names = dice.choice((*MIXES, *((name,) for name in (*VARIANTS, *sorted(MUTANTS)))))
    variants = [variant_named(name) for name in names]
    layouts = [
        layout
        for layout in LAYOUTS
        if all(variant is not None and layout in variant.layouts for variant in variants)
    ]
    layout = dice.choice(layouts)
    each = "partitions" if layout == "0.8" else "partitions_per_broker"
    topics = dice.sample(("clicks", "views"), dice.choice((1, 1, 2)))
    faults = dice.sample(SMALL_FAULTS, dice.randint(0, 2))
    fields: Fields = {
        "name": "drawn",
        "about": "a drawn scenario",
        "variant": names[0],
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": 1,
                "layout": layout,
                "topics": {topic: {each: dice.randint(1, 3)} for topic in topics},
            }
        },
        "groups": {
            "billing": {
                "consumers": [
                    {"variant": name}
                    for name in (*names, *names, *names)[: dice.randint(len(names), 3)]
                ],
                "streams": {topic: dice.randint(1, 2) for topic in topics},
                "config": {"zookeeper.session.timeout.ms": 2_000},
            }
        },
        "bounds": {
            **dict.fromkeys(faults, 1),
            "begin": "settled",
            "messages": dice.choice((0, 0, 1)),
            "consumers": 2,
        },
    }
    return settled_outcome(fields)


def settled_outcome(fields: Fields) -> Outcome:
    """Search a plan by the command: it begins settled, or progress is violated."""
    printed, said = StringIO(), StringIO()
    with TemporaryDirectory() as home, redirect_stdout(printed), redirect_stderr(said):
        file = Path(home, "drawn.yaml")
        file.write_text(yaml.safe_dump(fields))
        bound = ("--max-states", str(SETTLED_STATES), "--out", home, "--json")
        code = run_command(["explore", str(file), *bound])
    found = json.loads(printed.getvalue())
    if code == USAGE:
        return Outcome((f"a usage error: {found['error']['message']}",))
    return Outcome(tuple(settled_wrong(found)), 1, kinds=(_beginning(found),))


def _beginning(found: Fields) -> str:
    is_restless = any("does not come to rest by itself" in one for one in found["remarks"])
    return "never settles" if is_restless else "settles"


def settled_wrong(found: Fields) -> Iterator[str]:
    """A group that does not settle and does not violate progress."""
    [progress] = [one["verdict"] for one in found["properties"] if one["name"] == PROGRESS.name]
    if _beginning(found) == "never settles" and progress != Verdict.VIOLATED.value:
        yield f"the group never settles, and progress is {progress}"
    if _beginning(found) == "settles" and "settled in the beginning" not in found["bound"]:
        yield f"the search does not begin settled: {found['bound']}"
    if found["states"] < 1:
        yield "no state was searched"


# --- known limits --------------------------------------------------------------------------

LIMIT = "no client can do better"
NAMES = (
    "single ownership",
    "strict single ownership",
    "truthful registry",
    "full cover",
    "consensus",
    "agreed view",
    "balance",
    "progress",
)


def draw_limits(dice: Random) -> Outcome:
    """Draw an expectation with or without a limit, and a run that may meet it."""
    variant = dice.choice(("hardened", *VARIANTS, *MISTAKES))
    fields = _restless_groups(dice, ["hardened"])
    for group in fields["groups"].values():
        del group["variant"]
    layout = "0.8" if variant == "kafka_08" else "0.7"
    cluster = fields["clusters"]["main"]
    each = "partitions" if layout == "0.8" else "partitions_per_broker"
    cluster["layout"] = layout
    cluster["topics"] = {name: {each: 3} for name in cluster["topics"]}
    seed = dice.randrange(SEEDS)
    before = simulate(fields, seed=seed, variant=variant)
    wanted = _expectation(dice, before.violated)
    result = simulate({**fields, "expect": {variant: wanted}}, seed=seed, variant=variant)
    return Outcome(tuple(limits_wrong(result, wanted)), len(result.violated), kinds=())


def _expectation(dice: Random, violated: list[str]) -> Fields:
    """Some of what is violated, and sometimes more."""
    known = [*dict.fromkeys((*violated, *violated, *dice.sample(NAMES, 2)))]
    must = [name for name in known if dice.random() < (0.8 if name in violated else 0.2)]
    may = [name for name in known if name not in must and dice.random() < 0.6]
    wanted: Fields = {"violated": must, "may": may}
    return {**wanted, "limit": LIMIT} if dice.random() < 0.7 else wanted


def limits_wrong(result: Result, wanted: Fields) -> Iterator[str]:
    """A report of a violation by the wrong one of two words."""
    found, must = {*result.violated}, {*wanted["violated"]}
    is_limit = "limit" in wanted and bool(found) and must <= found <= must | {*wanted["may"]}
    if result.judgement.verdict is Verdict.UNKNOWN or _is_open(result):
        is_limit = False
    told = result.to_json()
    if bool(result.known_limit) != is_limit or bool(told["known_limit"]) != is_limit:
        yield f"{sorted(found)} violated, {wanted}: known limit is {result.known_limit!r}"
    shown = str(result)
    rows = {name: _row_of(shown, name) for name in found}
    for name, row in rows.items():
        word, other = ("known limit", "violated") if is_limit else ("violated", "known limit")
        if word not in row or other in row.partition(word)[0]:
            yield f"{name} is shown as {row!r}, not {word}"
    if ("known limit" in shown) != is_limit:
        yield f"the report speaks of a known limit: {not is_limit}"


def _is_open(result: Result) -> bool:
    """Whether the run does not show what it is about: then its expectation is open."""
    return any(
        one.counts and one.verdict is Verdict.UNKNOWN and one.claim.kind in ("sometimes", "end")
        for one in result.findings
    )


def _row_of(shown: str, name: str) -> str:
    return next((line for line in shown.splitlines() if line.startswith(f"{name}  ")), "")


SIGNATURES = RegressionClass(
    "signatures",
    "failure signatures: independent of names, few, and shrunk within their budget",
    draw_signatures,
    most_kinds=9,
)
FOLDERS = RegressionClass(
    "folders",
    "run folders: judged again from another directory, with the same verdicts",
    draw_folders,
)
SETTLED = RegressionClass(
    "settled",
    "searches that begin settled: a settled start, or a violation of progress",
    draw_settled,
)
LIMITS = RegressionClass(
    "limits",
    "known limits: named where the scenario explains a violation, and nowhere else",
    draw_limits,
)
