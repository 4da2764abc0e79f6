"""The page of a counterexample of replicas."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import needs_browser, rendered
from watchkeeper.model.counterexample.replicas import (
    Breach,
    LeaderRequest,
    ReplicasCounterexample,
    ReplicasState,
    ReplicasStep,
    ReplicaState,
)
from watchkeeper.reports.replicas.html import page_data, write_replicas_html


def state(
    leader: ReplicaState, follower: ReplicaState, *requests: LeaderRequest
) -> ReplicasState:
    """A state in which replica 0 leads in ZooKeeper."""
    return ReplicasState((leader, follower), LeaderRequest(0, 0, (0, 1)), requests, ("power",))


LEADER = ReplicaState("leads", None, 0, (0, 1), ((0, 0), (1, 0)), 2)
FOLLOWER = ReplicaState("follows", 0, 0, (), ((0, 0), (1, 0)), 1)
LOST = replace(FOLLOWER, role="knows no leader", follows=None, epoch=None, log=((0, 0),))
REQUEST = LeaderRequest(0, 0, (0, 1), (1,))


@pytest.fixture
def path() -> ReplicasCounterexample:
    """Three steps: nothing that is seen, a restart, and a cut below what is committed."""
    closed = replace(REQUEST, open_to=())
    return ReplicasCounterexample(
        variant="kafka_08",
        rule="high watermark",
        violates="strong ISR",
        proof="replica 1 lacks record 1",
        bound="2 replicas",
        first=state(LEADER, FOLLOWER, closed),
        steps=(
            ReplicasStep(1, "replica 0 commits offset 1", "", state(LEADER, FOLLOWER, closed)),
            ReplicasStep(2, "replica 1 loses", "a host loses", state(LEADER, LOST, REQUEST)),
            ReplicasStep(
                3,
                "replica 1 follows 0",
                "",
                state(LEADER, replace(FOLLOWER, log=((0, 0),)), closed),
            ),
        ),
        breaches=(Breach(leader=0, member=1, offset=1),),
    )


def test_the_data_of_the_page(path: ReplicasCounterexample) -> None:
    """It has the state before the first step, and after each."""
    data = page_data(path)

    assert len(data["states"]) == 1 + len(data["steps"]) == 4
    assert data["violation"] == 3
    assert data["longest"] == 2
    assert data["states"][2]["replicas"][1]["role"] == "knows no leader"
    assert data["states"][2]["requests"][0]["open_to"] == (1,)
    assert data["breaches"] == [{"leader": 0, "member": 1, "offset": 1}]
    assert [step["fault"] for step in data["steps"]] == ["", "a host loses", ""]


def test_the_page_is_the_same_each_time(path: ReplicasCounterexample, tmp_path: Path) -> None:
    """It loads nothing, and what it shows comes as text."""
    evil = "</script><b>&"
    written = set()
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        file = write_replicas_html(replace(path, proof=evil), tmp_path / name)
        written.add((tmp_path / name / file).read_bytes())

    [page] = written
    assert b"default-src 'none'" in page
    assert not re.findall(rb"(?:src|href)=\"(?!#)|@import|url\(|innerHTML", page)
    assert evil.encode() not in page
    found = re.search(rb'id="data">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1])["proof"] == evil


def opened(counterexample: ReplicasCounterexample, folder: Path, then: str = "") -> str:
    """The page as a browser has rendered it, after it has run the script `then`."""
    return rendered(folder / write_replicas_html(counterexample, folder), then=then)


@needs_browser
def test_the_page_opens_at_the_violation(path: ReplicasCounterexample, tmp_path: Path) -> None:
    """A row for each state; the replica and the records that break the property are marked."""
    page = opened(path, tmp_path)
    rows = re.findall(r'<a class="row.*?</a>', page, re.DOTALL)
    aside = page[page.index("<aside") :]

    assert len(rows) == 4
    assert 'class="row violation on"' in rows[3]
    assert [row.count('class="cell changed broken"') for row in rows] == [0, 0, 0, 1]
    assert [row.count('stroke="var(--breach)"') for row in rows] == [0, 0, 0, 2]
    assert "epoch 0 → 1" in rows[2]
    assert "epoch 0 → 1" not in rows[3]
    assert "changed" not in rows[1]
    assert "Step 3<" in aside
    assert "strong ISR is violated: replica 1 lacks record 1" in aside
    for text in ("record 0 (epoch 0), record 1 (epoch 0)", "high watermark 2", "{0, 1}", "power"):
        assert text in aside


DONE: list[tuple[str, int]] = [
    ("press('ArrowUp')", 2),
    ("press('k')", 1),
    ("press('k')", 0),
    ("press('k')", 0),
    ("press('j')", 1),
    ("press('End')", 3),
    ("press('ArrowRight')", 3),
    ("press('Home')", 0),
    ("document.querySelectorAll('a.row')[2].click()", 2),
    ("document.getElementById('after').click()", 3),
    ("document.getElementById('before').click()", 2),
    ("location.hash = '#step-1'", 1),
    ("document.getElementById('next-fault').click()", 2),
]
"""Actions in the page, in order, and the step that is chosen after each."""


@needs_browser
def test_keys_and_clicks_choose_a_step(path: ReplicasCounterexample, tmp_path: Path) -> None:
    done = ", ".join(f"() => {does}" for does, _ in DONE)
    then = f"""
        const press = (key) => dispatchEvent(new KeyboardEvent("keydown", {{key}}));
        const wait = () => new Promise((go) => setTimeout(go, 50));
        const seen = async () => {{
          for (const does of [{done}]) {{
            does();
            await wait();
            const rows = [...document.querySelectorAll("a.row.on .number")];
            const heads = [location.hash, document.querySelector("h2").firstChild.data];
            document.title += ";" + [...heads, ...rows.map((row) => row.textContent)].join();
          }}
        }};
        document.title = "";
        seen();
    """
    page = opened(path, tmp_path, then)

    found = re.search(r"<title>;(.*?)</title>", page)
    assert found is not None
    assert found[1].replace("✗ ", "").split(";") == [
        f"#step-{number},Step {number},{number}" for _, number in DONE
    ]


@needs_browser
def test_a_leader_outside_of_the_isr_is_marked(
    path: ReplicasCounterexample, tmp_path: Path
) -> None:
    """There is no record that lacks: the replica is marked alone."""
    outside: Any = replace(path, violates="leader in ISR", breaches=(Breach(leader=0),))
    page = opened(outside, tmp_path)
    rows = re.findall(r'<a class="row.*?</a>', page, re.DOTALL)

    assert 'class="cell  broken"' in rows[3]
    assert 'stroke="var(--breach)"' not in rows[3]
