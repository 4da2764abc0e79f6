"""What a failing run says in the terminal: at most twelve lines."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.virtual.world.folder import TRANSCRIPT
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case

MOST_FAULTS = 4
MOST_DEATHS = 2


def failure_text(outcome: Outcome, case: Case, folder: Path) -> str:
    """The property, the moment, the faults that it took, and the command that repeats it."""
    finding = outcome.violated[0]
    at = "" if finding.at_us is None else f" at {finding.at_us / 1e6:.3f} s"
    lines = [f"{finding.claim.name} is violated{at}: {finding.evidence}"]
    lines += [f"  {line}" for line in fault_lines(outcome)]
    lines += [f"  {death}" for death in outcome.deaths[:MOST_DEATHS]]
    lines.append(
        f"  seed {outcome.seed}, policy {outcome.policy}, "
        f"{len(outcome.schedule)} decisions of the schedule, {outcome.end_us / 1e6:.1f} s"
    )
    lines.append(f"  transcript: {folder / TRANSCRIPT}")
    lines.append(f"  page: {folder / 'spacetime.html'}")
    lines.append(f"  again: watchkeeper virtual --replay {folder / 'replay.json'}")
    return "\n".join(lines)


def fault_lines(outcome: Outcome) -> list[str]:
    """The faults that had an effect, a line each."""
    struck = [each for each in outcome.struck if each.effects]
    lines = []
    for each in struck[:MOST_FAULTS]:
        effects = ", ".join(f"{count} {effect}" for effect, count in each.effects.items())
        at_s = (each.at_us or 0) / 1e6
        lines.append(f"fault at {at_s:.3f} s: {each.strike.fault.kind.value} ({effects})")
    if len(struck) > MOST_FAULTS:
        lines.append(f"and {len(struck) - MOST_FAULTS} faults more")
    return lines or ["no fault: the schedule alone"]
