"""One cell of the table of kazoo's recipes: a program, a kind of fault, and many seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from docs.recipes.programs import programs_of

from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.virtual import faults
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.faults import Fault
from watchkeeper.virtual.world.run import Case
from watchkeeper.virtual.world.world import WorldSettings

FAULTS: dict[str, tuple[Fault, ...]] = {
    "none": (),
    "lost reply": (faults.lost_reply(most=2),),
    "lost request": (faults.lost_request(most=2),),
    "late request": (faults.late_request(),),
    "expiry": (faults.expire(),),
    "disconnect": (faults.disconnect(),),
    "cut": (faults.cut(),),
    "one-way cut": (faults.cut(one_way=True),),
    "delay": (faults.delay(),),
    "pause": (faults.pause(),),
    "crash": (faults.crash(),),
    "crash and restart": (faults.crash(restarts=True),),
    "clock skew": (faults.clock_skew(),),
    "lagging follower": (faults.lag(),),
    "leader lost": (faults.leader_loss(),),
    "quorum lost": (faults.quorum_loss(),),
}
"""Column -> the faults of its runs."""
SEVERAL = frozenset({"lagging follower", "leader lost", "quorum lost"})
"""The columns with three servers."""
UNTIL_S = 60.0


@dataclass(slots=True)
class Cell:
    """What the runs of one cell have shown."""

    recipe: str
    fault: str
    library: str = "kazoo"
    runs: int = 0
    struck: int = 0
    """Runs in which a fault had an effect."""
    verdicts: dict[str, int] = field(default_factory=dict)
    violated: dict[str, int] = field(default_factory=dict)
    """Property -> the runs that violate it."""
    zombies: int = 0
    """Runs in which a holder whose session had ended did not know it."""
    first_seed: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)


def case_of(recipe: str, fault: str, library: str = "kazoo") -> Case:
    """The test of a cell."""
    settings = WorldSettings(until_s=UNTIL_S, servers=3 if fault in SEVERAL else 1)
    return Case(f"{recipe}, {fault}", programs_of(library)[recipe], settings, FAULTS[fault])


def run_cell(recipe: str, fault: str, seeds: Iterable[int], library: str = "kazoo") -> Cell:
    """Run the seeds of a cell."""
    cell = Cell(recipe, fault, library)
    campaign = Campaign(case_of(recipe, fault, library), parse_policy("random"))
    for outcome in campaign.run_all(seeds):
        cell.runs += 1
        cell.struck += any(each.effects for each in outcome.struck)
        _count(cell.verdicts, outcome.verdict.value)
        for finding in outcome.findings:
            if finding.verdict is not Verdict.VIOLATED:
                continue
            if not finding.counts:
                cell.zombies += 1
                continue
            name = finding.claim.name
            _count(cell.violated, name)
            cell.first_seed.setdefault(name, outcome.seed)
            cell.evidence.setdefault(name, finding.evidence)
    return cell


def _count(counts: dict[str, int], what: str) -> None:
    counts[what] = counts.get(what, 0) + 1
