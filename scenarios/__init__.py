"""Scenario files: their schema, their reader, and the scenarios that ship with watchkeeper.

Reading order: `schema/` (the fields a file may have, and the errors of each), `text/` (YAML
with line numbers, units, error sentences), `plan/` (a scenario becomes a `Plan`, the form
that every world runs), `profiles/` (profile files: measured latencies). `scenario` holds
`Scenario` and reads it from a file, `overrides` changes single values of a scenario,
`shrink_steps` makes smaller scenarios. `files/` holds the scenarios that ship, and
`shipped_files` lists them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchkeeper.scenarios.scenario import Scenario, from_text, load
    from watchkeeper.scenarios.schema.schema import json_schema
    from watchkeeper.scenarios.shipped_files import shipped
    from watchkeeper.scenarios.text.errors import Problem, ScenarioError

_PUBLIC = {
    "Problem": "watchkeeper.scenarios.text.errors",
    "Scenario": "watchkeeper.scenarios.scenario",
    "ScenarioError": "watchkeeper.scenarios.text.errors",
    "from_text": "watchkeeper.scenarios.scenario",
    "json_schema": "watchkeeper.scenarios.schema.schema",
    "load": "watchkeeper.scenarios.scenario",
    "shipped": "watchkeeper.scenarios.shipped_files",
}
"""Public name -> its module, imported at the first use: a list of scenarios needs no schema."""

__all__ = [
    "Problem",
    "Scenario",
    "ScenarioError",
    "from_text",
    "json_schema",
    "load",
    "shipped",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
