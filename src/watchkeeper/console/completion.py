"""What a shell completes: names of scenarios, of variants and of runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import CompletionItem

RUNS = "runs"


def scenarios(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the shipped scenarios whose names begin so; else files are completed."""
    spec = find_spec("watchkeeper.scenarios")
    homes = [] if spec is None else list(spec.submodule_search_locations or ())
    names = sorted(path.stem for home in homes for path in Path(home, "files").glob("*.yaml"))
    return _beginning(names, begun) or [CompletionItem(begun, type="file")]


def variants(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return the variants whose names begin so."""
    from watchkeeper.model.group.variants import VARIANTS

    return _beginning(list(VARIANTS), begun)


def runs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the folders of runs that begin so; else files are completed."""
    folder = (context.lookup_default("out") if context.parent else None) or RUNS
    found = sorted(str(path.parent) for path in Path(folder).glob("*/verdict.json"))
    return _beginning(found, begun) or [CompletionItem(begun, type="file")]


def _beginning(words: list[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(begun)]
