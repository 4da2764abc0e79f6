"""The files of a run: what is written into its folder, in which order, and what is missing."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.api import folder
from watchkeeper.api.index import write_index
from watchkeeper.api.result import Result
from watchkeeper.console.exit import cannot_write
from watchkeeper.console.progress import timed
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports import pictures_of
from watchkeeper.scenarios.overrides import changed
from watchkeeper.scenarios.text.units import duration_text


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run, and the files in its folder."""

    result: Result
    home: Path
    files: list[str]
    missing: list[str]
    """The figures that were not drawn because of an interrupt."""

    @property
    def missing_text(self) -> str:
        """A message that names the missing figures and the command that draws them."""
        names = ", ".join(self.missing)
        command = f"watchkeeper report {shlex.quote(str(self.home))}"
        return f"{INTERRUPTED}: {names} not drawn; draw with: {command}"


def fill(home: Path, result: Result, *, pictures: bool) -> Ran:
    """Write trace, scenario and verdict; then draw, and list the figures in the verdict."""
    folder.clear(home)
    folder.write_trace(home, result.trace)
    folder.write_text(home / folder.SCENARIO, scenario_text(result))
    if result.profile is not None:
        folder.write_text(home / folder.PROFILE, result.profile.text)
    judged_from = [name for name in folder.JUDGED if (home / name).exists()]
    kept = [str(home / name) for name in (folder.VERDICT, *judged_from)]
    folder.write_verdict(home, result.to_json(kept))
    if not pictures:
        return Ran(result, home, kept, [])
    with timed("figures and pages"):
        _draw(home, result.trace)
    drawn = [name for name in folder.PICTURES if (home / name).exists()]
    files = [*kept, *(str(home / name) for name in (folder.INDEX, *drawn))]
    verdict = result.to_json(files)
    write_index(home, verdict, result.trace)
    folder.write_verdict(home, verdict)
    return Ran(
        result, home, files, [name for name in pictures_of(result.trace) if name not in drawn]
    )


def scenario_text(result: Result) -> str:
    """The scenario as it was run: a live run takes the tick of the ZooKeeper it finds."""
    scenario, ran = result.scenario, result.plan.clusters
    planned_clusters = scenario.plan(result.plan.variant).clusters
    ticks = [
        (f"clusters.{cluster.name}.zookeeper.tick", duration_text(cluster.zookeeper.tick_us))
        for cluster, planned_cluster in zip(ran, planned_clusters, strict=True)
        if cluster.zookeeper.tick_us != planned_cluster.zookeeper.tick_us
    ]
    return changed(scenario.document, ticks, scenario.name) if ticks else scenario.text


def _draw(home: Path, trace: Trace) -> None:
    """Draw all figures, or as many as there are before an interrupt."""
    try:
        from watchkeeper.reports import write_all

        write_all(trace, home)
    except OSError as error:
        advice = f"the verdict is in {home / folder.VERDICT}"
        raise cannot_write(f"the figures: {home}", error, advice) from None
    except KeyboardInterrupt:
        return
    except Exception:
        if not INTERRUPTS.came:
            raise
