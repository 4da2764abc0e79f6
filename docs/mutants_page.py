"""The page about mutants: the mistakes, the systems that made them, and what catches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.mutants.mutant import Configuration, Mutant
from watchkeeper.model.properties.verdicts import counted

MADE = "<!-- made by bench/mutants.py --write docs/mutants.md; edit the code, not this page -->"
ABOUT = """\
A mutant is a variant with one mistake that a real system made. A search of every interleaving
has to find the mistake, and has to find nothing of the kind in the variant without it, its
base. `tests/checker/test_mutants.py` fails if a mutant is not caught any more, or is caught by
another property. `model/mutants/catalogue.py` is the table behind this page;
`model/mutants/members.py` has the code of the mistakes, which no other variant runs."""
COLUMNS = """\
*Steps* is the length of the shortest counterexample in a search with default options, where a
read that no other process can observe is part of the step before it. *States* is the number
of states that the search had seen by then; if *progress* catches a mutant, the search has to
see all states first, since the property is about what can never happen any more. *s* is
seconds, measured once, on two busy cores.

*Seeds* is the number of simulated runs, out of {seeds:,}, that catch the mutant: the same
cluster, for 15 to 20 virtual seconds. Members that start together do so within 200 ms. The seed
draws the moment of the start and of every fault from four seconds, and a lost request from the
first eight of its kind. A run counts if it violates a property that the base does not violate
with the same seed. Of {all_} mutants {rare} are caught by at most one seed in a hundred,
{never} of these by none."""
MESSAGES = """\
## Mutants of clients and logs

Producers, consumers and logs are not searched: their tasks and their bytes have too many
orders. Each mistake has a small run of its own that shows it, and the same run without the
mistake shows nothing. *Shown* is the number of runs that show it: where it takes one order of
tasks among many, there are several runs, each with another order. `tests/mutants/clients.py`
and `tests/mutants/log.py` have the code, `tests/support/messages/client_runs.py` and
`tests/support/log/histories.py` the runs; tests fail if one of them is not caught any more."""
HEAD = ["mutant", "caught by", "configuration", "steps", "states", "s", "seeds"]
MESSAGES_HEAD = ["mutant", "caught by", "run", "shown"]


@dataclass(frozen=True, slots=True)
class Row:
    """The results for one mutant."""

    mutant: Mutant
    caught_by: str
    steps: int
    states: int
    seconds: float
    seeds: int
    """The number of simulated runs that catch it."""

    def to_json(self) -> dict[str, Any]:
        """It as a JSON value."""
        return {
            "mutant": self.mutant.name,
            "caught_by": self.caught_by,
            "steps": self.steps,
            "states": self.states,
            "seconds": self.seconds,
            "seeds": self.seeds,
        }

    def cells(self) -> list[str]:
        """It as cells of the table."""
        configuration = in_words(self.mutant.configuration)
        figures = [f"{self.steps}", f"{self.states:,}", f"{self.seconds}", f"{self.seeds:,}"]
        return [f"`{self.mutant.name}`", self.caught_by, configuration, *figures]


@dataclass(frozen=True, slots=True)
class Shown:
    """The results for one mistake of clients or logs."""

    name: str
    origin: str
    about: str
    caught_by: str
    run: str
    """What happens in a run."""
    shown: int
    """The number of runs that catch it."""
    runs: int

    def cells(self) -> list[str]:
        """It as cells of the table."""
        return [f"`{self.name}`", self.caught_by, self.run, f"{self.shown} of {self.runs}"]


def mutants_page(rows: Sequence[Row], seeds: int, shown: Sequence[Shown]) -> str:
    """The whole page."""
    rare = sum(0 < row.seeds * 100 <= seeds for row in rows)
    never = sum(row.seeds == 0 for row in rows)
    columns = COLUMNS.format(seeds=seeds, rare=rare + never, never=never, all_=len(rows))
    parts = [
        f"# Mutants\n{MADE}",
        ABOUT,
        "\n".join(_about(row.mutant) for row in rows),
        "## What catches them",
        "\n".join(_table(HEAD, [row.cells() for row in rows])),
        columns,
        MESSAGES,
        "\n".join(f"- `{mutant.name}`: {mutant.about} {mutant.origin}." for mutant in shown),
        "\n".join(_table(MESSAGES_HEAD, [mutant.cells() for mutant in shown])),
    ]
    return "\n\n".join(parts) + "\n"


def _about(mutant: Mutant) -> str:
    return f"- `{mutant.name}` (in `{mutant.base.name}`): {mutant.mechanism}. {mutant.origin}."


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def in_words(configuration: Configuration) -> str:
    """A configuration in a few words."""
    bounds = configuration.bounds
    words = [
        counted(configuration.members, "member"),
        counted(configuration.partitions, "partition"),
    ]
    words.append(counted(configuration.brokers, "broker"))
    if bounds.messages:
        words.append(f"{counted(bounds.messages, 'message')} each")
    words += [f"{number} {kind.replace('_', ' ')}" for kind, number in bounds.faults.items()]
    words.append("at rest before" if bounds.begin == "settled" else "from the start")
    return ", ".join(words)
