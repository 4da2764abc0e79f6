"""The page about the zoo: what was planted, where it was made first, and what catches it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from model.planting import Configuration, Plant
from model.verdicts import counted

MADE = "<!-- made by bench/zoo.py --write docs/zoo.md; edit the code, not this page -->"
ABOUT = """\
Mistakes that somebody made, planted one at a time into a variant that does not make them. A
search of every interleaving has to find each of them, and has to find nothing of the kind in
the variant it was planted in; `tests/test_zoo.py` fails where one of them is not caught any
more, or is caught by another property. `model/zoo.py` is the table behind this page, and
`model/flaws.py` has the code of the mistakes, which no other variant runs."""
COLUMNS = """\
*Steps* is the length of the counterexample, the shortest there is in a search as it runs by
default, where a read that concerns nobody else is a part of the step before it. *States* is
how many the search had seen when it had found it; where *progress* catches a plant the search
has to see all states first, since it is about what can never come any more. *s* is seconds,
measured once, on two cores that did other things as well.

*Seeds* is how many of {seeds:,} simulated runs catch it: the same cluster, for 15 to 20
virtual seconds. Members that start at once do so within 200 ms; when, and when everything else
happens, the seed draws from four seconds, and a lost request is one of the first eight of its
kind. A run counts if it violates anything that the base does not violate with the same seed.
Of {all_} plants {rare} show themselves to at most one seed in a hundred, {never} of these to
none."""
MESSAGES = """\
## Those of clients and of logs

Producers, consumers and logs are not searched: their threads and their bytes are too many
orders. Each mistake has a run of its own, as small as it shows itself in, and the same run of
what it was planted in shows nothing. *Shown* is in how many of these runs; where it takes one
order of threads among many, there are several runs, each with another order.
`model/clients/flaws.py` and `model/log/flaws.py` have their code, `tests/client_runs.py` and
`tests/log_histories.py` the runs; tests fail where one of them is not caught any more."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was found out about a plant."""

    plant: Plant
    caught_by: str
    steps: int
    states: int
    seconds: float
    seeds: int
    """How many simulated runs catch it."""

    def to_json(self) -> dict[str, Any]:
        """It as a JSON value."""
        return {
            "plant": self.plant.name,
            "caught_by": self.caught_by,
            "steps": self.steps,
            "states": self.states,
            "seconds": self.seconds,
            "seeds": self.seeds,
        }

    def cells(self) -> list[str]:
        """It as cells of the table."""
        configuration = in_words(self.plant.configuration)
        figures = [f"{self.steps}", f"{self.states:,}", f"{self.seconds}", f"{self.seeds:,}"]
        return [f"`{self.plant.name}`", self.caught_by, configuration, *figures]


@dataclass(frozen=True, slots=True)
class Shown:
    """What was found out about a mistake of clients or of logs."""

    name: str
    origin: str
    about: str
    caught_by: str
    run: str
    """What happens in a run of it."""
    shown: int
    """In how many of the runs it is caught."""
    runs: int

    def cells(self) -> list[str]:
        """It as cells of the table."""
        return [f"`{self.name}`", self.caught_by, self.run, f"{self.shown} of {self.runs}"]


def zoo_page(rows: Sequence[Row], seeds: int, shown: Sequence[Shown]) -> str:
    """The whole page."""
    head = ["plant", "caught by", "configuration", "steps", "states", "s", "seeds"]
    rare = sum(0 < row.seeds * 100 <= seeds for row in rows)
    never = sum(row.seeds == 0 for row in rows)
    columns = COLUMNS.format(seeds=seeds, rare=rare + never, never=never, all_=len(rows))
    parts = [
        f"# The zoo\n{MADE}",
        ABOUT,
        "\n".join(_about(row.plant) for row in rows),
        "## What catches them",
        "\n".join(_table(head, [row.cells() for row in rows])),
        columns,
        MESSAGES,
        "\n".join(f"- `{one.name}`: {one.about} {one.origin}." for one in shown),
        "\n".join(_table(["plant", "caught by", "run", "shown"], [one.cells() for one in shown])),
    ]
    return "\n\n".join(parts) + "\n"


def _about(plant: Plant) -> str:
    return f"- `{plant.name}` (in `{plant.base.name}`): {plant.mechanism}. {plant.origin}."


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def in_words(one: Configuration) -> str:
    """A configuration in a few words."""
    bounds = one.bounds
    words = [counted(one.members, "member"), counted(one.partitions, "partition")]
    words.append(counted(one.brokers, "broker"))
    if bounds.messages:
        words.append(f"{counted(bounds.messages, 'message')} each")
    words += [f"{number} {kind.replace('_', ' ')}" for kind, number in bounds.faults.items()]
    words.append("at rest before" if bounds.begin == "settled" else "from the start")
    return ", ".join(words)
