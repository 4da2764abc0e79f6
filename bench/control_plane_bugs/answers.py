"""The answers in which `hardened` differs from 0.8.2.2: each is taken back by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any
from unittest.mock import patch

from bench.control_plane_bugs.mutant import Apply, Mutant

from watchkeeper.model.controller.state_machines import variants
from watchkeeper.model.replication import variants as replication_variants


def answers() -> Iterator[Mutant]:
    """Yield a mutant for each answer of `hardened` that 0.8.2.2 does not give."""
    tables = (
        (variants.CONTROLLERS, variants.KAFKA_08, variants.HARDENED),
        (
            replication_variants.REPLICATIONS,
            replication_variants.KAFKA_08,
            replication_variants.HARDENED,
        ),
    )
    for table, shipped, hardened in tables:
        for field in fields(hardened):
            old, new = getattr(shipped, field.name), getattr(hardened, field.name)
            if field.name == "name" or old == new:
                continue
            weaker = replace(hardened, **{field.name: old})
            says = f"{field.name.replace('_', ' ')}: {_in_words(old)}"
            yield Mutant(
                field.name, says, "hardened", ("every", "drawn"), _in_table(table, weaker)
            )


def _in_table(table: dict[str, Any], weaker: Any) -> Apply:
    return lambda: patch.dict(table, {"hardened": weaker})


def _in_words(answer: Any) -> str:
    return str(getattr(answer, "name", answer))
