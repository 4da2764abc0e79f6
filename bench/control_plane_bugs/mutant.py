"""A mistake that is put back into the control plane, and the runs that have to catch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

Apply = Callable[[], AbstractContextManager[Any]]
Scenario = dict[str, Any]


class Mutant(NamedTuple):
    """A mistake, and the runs in which it has to be caught."""

    name: str
    says: str
    variant: str
    scenarios: tuple[str | Scenario, ...]
    """Shipped scenarios and replays; `drawn` and `every` stand for many."""
    apply: Apply


def swap(*swaps: tuple[Any, str, Any]) -> Apply:
    """Return what replaces these attributes: where, name, and the mistake."""

    @contextmanager
    def applied() -> Iterator[None]:
        with ExitStack() as stack:
            for where, name, mistake in swaps:
                stack.enter_context(patch.object(where, name, mistake))
            yield

    return applied


async def nothing(*arguments: Any, **more: Any) -> None:
    """Do nothing."""
