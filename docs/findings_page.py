"""Makes the page of findings by running its searches.

python -m docs.findings_page                             print the page
python -m docs.findings_page --write docs/findings.md    write it
python -m docs.findings_page --check docs/findings.md    exit 1 if it is out of date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from docs import findings

HOLDS, VIOLATED = 0, 1
HEAD = f"""\
# What searches have found

Made by `python -m docs.findings_page --write docs/findings.md`; `--check` makes it again and
reports differences.

Two members of a group share a topic of two partitions on one broker. Each variant has a table of
searches, the same that `watchkeeper explore` runs for a scenario without bounds: a row is a fault
or a change of topics that is tried once; a column tells whether the group begins with the start
of its members (*fresh*) or at rest (*settled*), and whether each partition has a message, which
members read and commit.

A cell is a search of every interleaving. It has the violated properties, each with the steps of
its nearest counterexample, or the number of states if no property is violated. `+ …` marks a
search that is not complete: it ended at {findings.MOST_STATES:,} states, and those that it has
not seen may violate more. *Progress* is judged by complete searches alone. If a complete search
violates no property, then no state violates one, every state at rest has the right assignment,
and such a state is within reach from every state once there are no more faults. Pauses and timers
may end at any moment, so a search also finds violations that need unlucky timing.

## All variants

How many of the {len(findings.FAULTS)} rows violate a property, in any column:
"""
CASES = """\
## Cases

Each case is a shortest counterexample within its bound. `watchkeeper explore` prints such a
counterexample step by step.
"""


def page(report: Callable[[str], None]) -> str:
    """The whole page."""
    found = findings.found_of_all(findings.ROWS, findings.MOST_STATES, report)
    lines = [HEAD, *findings.overview(found), ""]
    lines += [line for one in found for line in findings.section(one)]
    lines.append(CASES)
    for case in findings.CASES:
        report(case.title)
        lines += findings.case_lines(case)
    return "\n".join(lines).rstrip() + "\n"


def compare(place: Path, made: str) -> int:
    """Print the differences between a page and a new one; return 1 if there are any."""
    text = place.read_text(encoding="utf-8")
    for line in unified_diff(
        text.splitlines(), made.splitlines(), str(place), "now", lineterm=""
    ):
        print(line)
    return HOLDS if text == made else VIOLATED


def main(arguments: list[str]) -> int:
    """Print the page, write it, or compare it with a file."""
    parser = argparse.ArgumentParser(prog="python -m docs.findings_page")
    parser.add_argument("--write", type=Path, help="write the page there, and print nothing")
    parser.add_argument("--check", type=Path, help="exit 1 if this page is out of date")
    given = parser.parse_args(arguments)
    made = page(lambda title: print(title, file=sys.stderr))
    if given.check is not None:
        return compare(given.check, made)
    if given.write is not None:
        given.write.write_text(made, encoding="utf-8")
    else:
        print(made, end="")
    return HOLDS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
