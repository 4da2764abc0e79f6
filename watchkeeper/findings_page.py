"""The page of findings, made by the searches themselves."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from watchkeeper import findings
from watchkeeper.endings import HOLDS, USAGE, VIOLATED, Stop

HEAD = """\
# What searches have found

Made by `watchkeeper findings --write docs/findings.md`; `--check` makes it again and says
whether it is still true.

Two members of a group share a topic of two partitions on one broker, from the moment both
start. Each cell is a search of every interleaving with one fault of a kind: what is violated,
each with the length of the shortest way there, or how many states there are in which everything
holds. *Holds* means safety in every state, a group that is well at every rest, and a good rest
that can be reached from everywhere once there are no more faults. Pauses are over at any moment
and timers run out at any moment, so a search finds what needs unlucky clocks as well.
"""
CASES = """\
## Cases

Each is the shortest way that there is, in its bound; `watchkeeper explore` tells such a way
step by step.
"""


def page(tell: Callable[[str], None]) -> str:
    """The whole page."""
    columns = ["", *findings.FAULTS]
    table = [
        f"| {' | '.join(columns)} |",
        f"| {' | '.join('---' for _ in columns)} |",
        *(f"| {' | '.join(row)} |" for row in findings.rows(tell)),
    ]
    lines = [HEAD, *table, "", CASES]
    for case in findings.CASES:
        tell(case.title)
        lines += findings.case_lines(case)
    return "\n".join(lines).rstrip() + "\n"


def save(place: Path, made: str) -> None:
    """Write the page; Stop where that cannot be."""
    try:
        place.write_text(made, encoding="utf-8")
    except OSError as error:
        raise Stop(USAGE, f"{place} cannot be written: {error.strerror or error}") from None


def compare(place: Path, made: str) -> int:
    """Whether a page says what was found now; print where it does not."""
    try:
        said = place.read_text(encoding="utf-8")
    except OSError as error:
        raise Stop(USAGE, f"{place} cannot be read: {error.strerror or error}") from None
    for line in unified_diff(
        said.splitlines(), made.splitlines(), str(place), "now", lineterm=""
    ):
        print(line)
    return HOLDS if said == made else VIOLATED
