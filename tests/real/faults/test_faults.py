"""What a fault of a live run does with the options that a timeline leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.real.faults.faults import partition


@pytest.mark.parametrize(
    ("options", "directions"),
    [
        ((), ("to", "from")),
        ((("direction", "both"),), ("to", "from")),
        ((("direction", "to"),), ("to",)),
        ((("direction", "from"),), ("from",)),
    ],
)
def test_a_partition_cuts_both_directions_if_it_names_none(
    options: Any, directions: tuple[str, ...]
) -> None:
    """A member that is only deaf, or only mute, behaves in another way."""
    cuts: list[tuple[str, ...]] = []

    def cut(name: str, add: Any, *, directions: tuple[str, ...]) -> Any:
        cuts.append(directions)
        return SimpleNamespace(end=lambda: None)

    world: Any = SimpleNamespace(
        server=lambda name: None,
        proxy_of=lambda name: SimpleNamespace(cut=cut),
        later=lambda effect, for_us, end: None,
    )
    action = Action(0, VERBS["partition"], "billing/0", options=(*options, ("for", 1_000)))

    partition(world, action, FaultEffect(action))

    assert cuts == [directions]
