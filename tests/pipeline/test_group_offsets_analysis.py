"""Offsets in Kafka, judged and computed a second time: of traces drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from watchkeeper.model.properties.group_offsets import GROUP_OFFSETS, GroupOffsetsJudge
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import ENCODER, EVENT, Event
from watchkeeper.pipeline.analysis.engine.engine import Engine, Schema
from watchkeeper.pipeline.analysis.facts.events import EVENTS, events
from watchkeeper.pipeline.analysis.facts.intervals import changes
from watchkeeper.pipeline.analysis.facts.plan_facts import RETENTIONS
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.group_offsets import judged

MEMBERS = ("billing/0", "billing/1")
PARTITIONS = (("clicks", "0"), ("clicks", "1"))
CLAIMS = [claim.name for claim in GROUP_OFFSETS]
RETENTION_US = 9_000
"""So many moments, of a millisecond each, make a commit too old."""
TRACES = {f"drawn-{seed}": seed for seed in range(80)}


class DrawnTrace:
    """One run of a group, event by event; most of what is drawn no run should have."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.events: list[Event] = []
        self.offset = 0
        acts = (
            *(self.commits, self.commits, self.commits, self.fetches, self.fetches),
            *(self.begins, self.begins, self.writes, self.reads, self.starts),
        )
        for _ in range(self.chance.randrange(2, 30)):
            self.chance.choice(acts)(self.chance.choice(MEMBERS))

    def add(
        self,
        node: str,
        kind: str,
        detail: dict[str, Any],
        *,
        group: str = "billing",
        place: tuple[str, str] = ("", ""),
    ) -> None:
        """Write an event; its moment is its number."""
        seq = len(self.events)
        self.events.append(EVENT((seq, seq * 1000, node, kind, 0, group, *place, 0, detail)))

    def some(self) -> list[tuple[str, str]]:
        """Return one partition or two."""
        return self.chance.sample(PARTITIONS, self.chance.choice((1, 1, 2)))

    def next_offset(self) -> int:
        """Return an offset that is greater than before, or not."""
        self.offset += self.chance.choice((1, 1, 1, 0, -1))
        return max(self.offset, 0)

    def commits(self, node: str) -> None:
        """A member commits; an answer may be missing, or accept a part."""
        rows = [[*place, self.next_offset()] for place in self.some()]
        self.add(node, EventKind.OFFSET_COMMIT_SENT, {"offsets": rows})
        if self.chance.random() < 0.3:
            self.chance.choice((self.commits, self.fetches, self.begins))(MEMBERS[0])
        if self.chance.random() < 0.8:
            accepted = rows[: self.chance.choice((1, 2))]
            detail = {"accepted": accepted, "errors": []}
            self.add(node, EventKind.OFFSET_COMMIT_ANSWERED, detail)

    def fetches(self, node: str) -> None:
        """A member fetches what it finds, something older, or nothing."""
        places = self.some()
        self.add(node, EventKind.OFFSET_FETCH_SENT, {"partitions": [list(at) for at in places]})
        if self.chance.random() < 0.3:
            self.commits(MEMBERS[1])
        if self.chance.random() < 0.9:
            rows = [
                [*at, self.chance.choice((self.offset, self.offset - 1, -1))] for at in places
            ]
            self.add(node, EventKind.OFFSET_FETCH_ANSWERED, {"offsets": rows, "errors": []})

    def begins(self, node: str) -> None:
        """A member begins somewhere, or ceases."""
        does = self.chance.choice(("begins", "begins", "begins", "ceases"))
        detail = {"does": does, "at": max(self.offset - self.chance.choice((0, 0, 1)), -1)}
        self.add(node, EventKind.FETCHING, detail, place=self.chance.choice(PARTITIONS))

    def writes(self, node: str) -> None:
        """An offset is written to ZooKeeper, or something else, or it is deleted."""
        path = "/consumers/billing/offsets/{}/{}".format(*self.chance.choice(PARTITIONS))
        data = self.chance.choice((str(self.next_offset()), str(self.offset), "x"))
        change = self.chance.choice((["changed", path, 0, data], ["deleted", path, 0]))
        self.add("zookeeper/1", EventKind.APPLIED, {"by": "set", "did": [change]}, group="")

    def reads(self, node: str) -> None:
        """A member looks in ZooKeeper, or reads something else there."""
        purpose = self.chance.choice(("read offsets", "read offsets", "read members"))
        self.add(node, EventKind.REQUEST, {"op": "get", "purpose": purpose, "path": "/"})

    def starts(self, node: str) -> None:
        """A member starts again."""
        self.add(node, EventKind.STARTED, {})


DRAWN = {name: DrawnTrace(seed).events for name, seed in TRACES.items()}


def of_judge(found: list[Event]) -> dict[str, tuple[str, int | None]]:
    """What the judge says of a trace: the verdict, and the event that first violates."""
    judge = GroupOffsetsJudge({"billing": RETENTION_US})
    for event in found:
        handler = judge.handlers.get(event.kind)
        if handler is not None:
            handler(event)
    return {
        finding.claim.name: (
            finding.verdict.value,
            None if finding.at_us is None else finding.at_us // 1000,
        )
        for finding in judge.findings()
    }


@pytest.fixture(scope="module")
def computed(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """What tables say of all traces at once."""
    home = tmp_path_factory.mktemp("drawn")
    for name, found in DRAWN.items():
        _write(home / f"run={name}", found)
    seen = events(engine, home)
    schema = Schema({"run": "string", "keeps_offsets": "boolean"})
    runs = engine.made([(name, True) for name in DRAWN], schema)
    tables = Tables(engine, tmp_path_factory.mktemp("tables"))
    kept = [(name, "billing", RETENTION_US) for name in DRAWN]
    retentions = engine.made(kept, RETENTIONS)
    rows = judged(runs, seen, changes(seen), retentions, tables).collect()
    return {(row.run, row.property): (row.verdict, row.seq) for row in rows}


def _write(folder: Path, found: list[Event]) -> None:
    folder.mkdir()
    names = [name for name in EVENTS.names if name not in ("run", "detail")]
    columns = {name: [getattr(event, name) for event in found] for name in names}
    columns["detail"] = [ENCODER.encode(event.detail).decode() for event in found]
    kinds = {"seq": pa.int32(), "t_us": pa.int64(), "session": pa.int64(), "zxid": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    pq.write_table(pa.Table.from_pydict(columns, schema=schema), folder / "events.parquet")


def test_judge_and_tables_say_the_same_of_any_trace(computed: dict[Any, Any]) -> None:
    """The verdict, and the first event that violates; each verdict comes out."""
    expected = {
        (name, claim): verdict
        for name in DRAWN
        for claim, verdict in of_judge(DRAWN[name]).items()
    }
    assert {key: each for key, each in expected.items() if computed[key] != each} == {}
    assert {(claim, verdict) for (_, claim), (verdict, _) in expected.items()} == {
        (claim, verdict) for claim in CLAIMS for verdict in ("holds", "violated", "unknown")
    }


def forgets_acknowledgements(judge: GroupOffsetsJudge, event: Event) -> None:
    """Where a commit counts as never acknowledged."""


def looks_at_nothing(judge: GroupOffsetsJudge, event: Event) -> None:
    """Where a member does not look."""


def never_old(judge: GroupOffsetsJudge, group: str, sent_us: int, now_us: int) -> bool:
    """Where no commit expires."""
    return False


MISTAKES: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("_commit_answered", forgets_acknowledgements, "commits are found"),
    ("_look", looks_at_nothing, "goes on where it stopped"),
    ("_is_old", never_old, "no offset is missing"),
)


@pytest.mark.parametrize(("name", "mistake", "claim"), MISTAKES)
def test_a_mistake_of_the_judge_is_a_difference(
    computed: dict[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mistake: Callable[..., None],
    claim: str,
) -> None:
    """Otherwise agreement says nothing."""
    monkeypatch.setattr(GroupOffsetsJudge, name, mistake)
    differing = {
        found
        for run in DRAWN
        for found, verdict in of_judge(DRAWN[run]).items()
        if computed[run, found] != verdict
    }
    assert claim in differing
