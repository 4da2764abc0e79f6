"""The section that has the published TLA+ models beside our search, from recorded figures.

`bench/truncation_rules.py --json`, with TLC's jar and the models, writes the figures; both are
not part of the project.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from watchkeeper.checker.replication.partition import Bounds

Table = Callable[[list[str], Iterator[list[str]]], str]
FIGURES = Path(__file__).resolve().parent / "truncation_rules.json"
JUDGED = ("WeakIsr", "StrongIsr")
SECONDS_SHOWN = 10
"""Below it a tenth of a second is shown."""

BEFORE = """\
The models are those of `github.com/hachikuji/kafka-specification` at commit `d68782b` of 2
January 2020: `KafkaTruncateToHighWatermark`, `Kip101`, `Kip279`, `Kip320FirstTry` and `Kip320`.
TLC is the model checker of TLA+. For this comparison the search takes the steps of their text,
which differs from Kafka in three places:

- The controller takes the last member out of an ISR that has no leader. Kafka does not since
  0.8.0.
- No replica takes a request without a leader. The action draws the leader from `Replicas`, of
  which `None` is no member, so its branch for `None` is never enabled.
- `TruncateTo` is enabled only within the follower's log. In `Kip101` a follower whose last
  epoch goes on in the leader's log cannot follow at all. Kafka leaves its log as it is.

So these counts are other ones than those above. The nearest violations are as near as those
above: none of the three decides what a rule loses."""

AFTER = """\
- **The states are the same.** {complete} searches to the end have as many distinct states, and
  as many levels, as TLC's. In {by_state} of them the states were compared one by one, by TLC's
  dump: none is missing on either side.
- **The nearest violations are equally near** in {violated} searches. TLC's state after each
  step of its counterexample is a state after a step here; that is how the tables below put
  TLC's steps into the words of this page.
- **States until a violation.** TLC stops when it makes the state that violates the invariant.
  The search here stops when it comes to expand that state, and has made most of the next level
  by then.
- **Generated.** Both count a successor each time that a step leads to it. TLC takes a step once
  for each alternative of its formula: twice where an empty replica follows in `Kip279`, and
  where a member that leaves the ISR both lags and is in another epoch in `Kip320`. Else both
  are equal.
- **`LeaderInIsr`** fails in the first state, in TLC and here: there is no leader yet, and
  `None` is no member of the ISR. The property *leader in ISR* of this page lets that be, and
  holds. The module `Kip320` names `LeaderInIsr` as a theorem.
- **`TypeOk`** cannot be evaluated by this TLC as soon as a log has a record: it compares `Nil`,
  which is -1, with a record.
- **Seconds** are of the wall clock, one core each, while other work had both cores (load 5 to
  11): read them as sizes. TLC's have the start of Java in them, about a second idle, and one
  worker: with more a counterexample need not be nearest."""


def published_models(table: Table) -> Iterator[str]:
    """Yield the parts of the section."""
    recorded = json.loads(FIGURES.read_text(encoding="utf-8"))
    rows = recorded["rows"]
    machine = recorded["machine"]
    yield "## Beside the published TLA+ models"
    yield BEFORE
    yield (
        f"TLC2 {recorded['tlc']} and {machine['python']}, on {machine['cpu']} with\n"
        f"{machine['cores']} cores, by\n"
        "`python bench/truncation_rules.py --tlc JAR --models FOLDER --states 20000`.\n"
        "The columns of invariants have the steps of the nearest violation, here and in TLC."
    )
    yield _spaces(table, rows)
    yield "The searches that end at a violation:"
    yield _violations(table, rows)
    yield _after(rows)
    yield "### The counterexamples side by side"
    yield "The nearest violation of `StrongIsr` within the bounds where it has the fewest steps."
    yield from _side_by_side(table, rows)


def _spaces(table: Table, rows: list[Any]) -> str:
    lines = (
        [
            row["rule"],
            _bounds(row),
            *(_steps(_row(rows, row, name)) for name in JUDGED),
            *_pair(row, "distinct"),
            *_pair(row, "generated"),
            *_seconds(row),
        ]
        for row in rows
        if row["invariant"] == "every state"
    )
    heads = ["rule", "bounds", "`WeakIsr`", "`StrongIsr`", "states", "TLC's"]
    return table([*heads, "generated", "TLC's", "s", "TLC's"], lines)


def _violations(table: Table, rows: list[Any]) -> str:
    lines = (
        [
            row["rule"],
            _bounds(row),
            f"`{row['invariant']}`",
            _steps(row),
            *_pair(row, "distinct"),
            *_seconds(row),
        ]
        for row in rows
        if row["invariant"] in JUDGED and row["ours"]["steps"]
    )
    heads = ["rule", "bounds", "invariant", "steps", "states", "TLC's", "s", "TLC's"]
    return table(heads, lines)


def _after(rows: list[Any]) -> str:
    judged = [row for row in rows if row["ours"] is not None]
    return AFTER.format(
        complete=sum(1 for row in judged if row["ours"]["is_complete"]),
        by_state=sum(1 for row in judged if row["same_states"]),
        violated=sum(1 for row in judged if row["ours"]["steps"]),
    )


def _side_by_side(table: Table, rows: list[Any]) -> Iterator[str]:
    nearest: dict[str, Any] = {}
    for row in rows:
        if row["invariant"] == "StrongIsr" and row["ours"]["steps"]:
            before = nearest.get(row["rule"])
            if before is None or len(row["ours"]["steps"]) < len(before["ours"]["steps"]):
                nearest[row["rule"]] = row
    for rule, row in nearest.items():
        pairs = zip_longest(row["ours"]["steps"], row["tlc"]["steps"], fillvalue="")
        lines = ([str(at), ours, theirs] for at, (ours, theirs) in enumerate(pairs, 1))
        yield f"**{rule}** ({_bounds(row)})\n\n" + table(["", "here", "TLC"], lines)


def _row(rows: list[Any], like: Any, invariant: str) -> Any:
    return next(
        row
        for row in rows
        if (row["invariant"], row["rule"], row["bounds"])
        == (invariant, like["rule"], like["bounds"])
    )


def _bounds(row: Any) -> str:
    return str(Bounds(**row["bounds"]))


def _steps(row: Any) -> str:
    ours, theirs = (len(row[who]["steps"]) for who in ("ours", "tlc"))
    return f"{ours} and {theirs}" if ours or theirs else "holds"


def _pair(row: Any, what: str) -> tuple[str, str]:
    return (f"{row['ours'][what]:,}", f"{row['tlc'][what]:,}")


def _seconds(row: Any) -> tuple[str, ...]:
    seconds = (row[who]["seconds"] for who in ("ours", "tlc"))
    return tuple(f"{one:.0f}" if one >= SECONDS_SHOWN else f"{one:.1f}" for one in seconds)
