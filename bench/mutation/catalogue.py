"""The mutants: every edit of the modules that the members of a cluster run.

A mutant keeps its name while its function keeps the same number of edits of the same operator
before it. So a name survives changes elsewhere, and the text of its line tells whether it still
means the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path

from bench.mutation.operators import SourceEdit, edits_of

HOME = Path(__file__).resolve().parent.parent.parent
SHARE = 5
"""A run takes one of so many mutants, unless an option says otherwise."""

OF_A_RUN = ("tests/sim/test_transcripts.py", "tests/sim/test_late_and_lost.py")
"""The tests of single runs, event by event."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module with protocol code."""

    name: str
    """Its path below `model/`, without `.py`."""
    tests: tuple[str, ...]
    """The tests of this module."""
    functions: frozenset[str] = field(default_factory=frozenset)
    """The functions and classes that members run; empty for all."""
    operators: tuple[str, ...] = ()
    """The operators that make sense in it; empty for all."""

    @property
    def path(self) -> Path:
        """The file."""
        return HOME / "model" / f"{self.name}.py"

    @property
    def imported_as(self) -> str:
        """The name by which it is imported."""
        return f"watchkeeper.model.{self.name.replace('/', '.')}"

    def has(self, function: str) -> bool:
        """Whether members run a function."""
        return not self.functions or function.partition(".")[0] in self.functions


MODULES = (
    Module(
        "group/assignment",
        ("tests/model/group/test_assignment.py", "tests/model/group/test_kafka_tables.py"),
    ),
    Module("group/claims", OF_A_RUN),
    Module("group/consumer", (*OF_A_RUN, "tests/sim/test_commits_by_hand.py")),
    Module("group/offsets", (*OF_A_RUN, "tests/model/group/test_offset_before_claim.py")),
    Module("group/pipelined_reads", OF_A_RUN),
    Module("group/reads", OF_A_RUN),
    Module("group/rebalance", (*OF_A_RUN, "tests/model/group/test_offset_before_claim.py")),
    Module("group/registration", (*OF_A_RUN, "tests/sim/test_new_groups.py")),
    Module("group/state", (*OF_A_RUN, "tests/model/group/test_kafka_tables.py")),
    Module("group/variants", OF_A_RUN, operators=("step",)),
    Module("broker/registration", (*OF_A_RUN, "tests/sim/test_bounces.py")),
    Module("broker/administrator", ("tests/model/broker/test_administrator.py",)),
    Module("actor/retry", OF_A_RUN),
    Module(
        "registry/paths",
        ("tests/model/registry/test_paths.py",),
        frozenset(
            {
                *("parse_owner", "broker_of", "encode_number", "decode_number", "as_text"),
                *("decode_json", "encode_json", "BrokerInfo", "encode_broker", "decode_broker"),
                *("_decode_broker_json", "parent_of"),
            }
        ),
    ),
    Module(
        "registry/payloads",
        ("tests/model/registry/test_payloads.py",),
        frozenset({"_ints", "_int", "TopicAssignment", "_is_index", "PartitionState"}),
    ),
    Module("registry/subscription", ("tests/model/registry/test_payloads.py",)),
    Module("registry/topic_filter", ("tests/model/registry/test_topic_filter.py",)),
)
"""The modules that consumers, brokers and the administrator of a cluster run."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one edit."""

    module: Module
    edit: SourceEdit

    @property
    def name(self) -> str:
        """Module, function, operator and ordinal."""
        return f"{self.module.name}:{self.edit.name}"

    def source(self) -> str:
        """Return the edited source."""
        return self.edit.apply(self.module.path.read_text(encoding="utf-8"))


@cache
def mutants_of(module: Module) -> tuple[Mutant, ...]:
    """Return the mutants of a module, in the order of its text."""
    source = module.path.read_text(encoding="utf-8")
    edits = edits_of(source, module.operators) if module.operators else edits_of(source)
    return tuple(Mutant(module, edit) for edit in edits if module.has(edit.function))


def all_mutants(modules: Iterable[Module] = MODULES) -> list[Mutant]:
    """Return the mutants of all modules."""
    return [mutant for module in modules for mutant in mutants_of(module)]


def drawn(mutants: Iterable[Mutant], share: int = SHARE) -> list[Mutant]:
    """Return one of `share` mutants, by the hashes of their names.

    Whether a mutant is drawn depends on its name alone: other mutants may come and go.
    """
    return [mutant for mutant in mutants if _hash(mutant.name) % share == 0]


def sampled(mutants: Collection[Mutant], number: int, seed: int) -> list[Mutant]:
    """Return so many mutants, others with each seed, in the order of the text."""
    ordered = sorted(mutants, key=lambda mutant: _hash(f"{seed}/{mutant.name}"))
    chosen = {mutant.name for mutant in ordered[:number]}
    return [mutant for mutant in mutants if mutant.name in chosen]


def mixed(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the mutants in the order of their hashes: each part of them is a fair sample."""
    return sorted(mutants, key=lambda mutant: _hash(f"order/{mutant.name}"))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
