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
        brokers_against=lambda action: (),
    )
    action = Action(0, VERBS["partition"], "billing/0", options=(*options, ("for", 1_000)))

    partition(world, action, FaultEffect(action))

    assert cuts == [directions]


@pytest.mark.parametrize(
    ("direction", "expected"), [("both", ("to", "from")), ("to", ("to",)), ("from", ("from",))]
)
def test_brokers_are_cut_off_from_one_another(direction: str, expected: tuple[str, ...]) -> None:
    """Where the other side is brokers, ZooKeeper stays within reach."""
    cuts: list[Any] = []

    def cut_brokers(name: str, others: Any, count: Any, directions: Any) -> Any:
        cuts.append((name, others, directions))
        return lambda: None

    world: Any = SimpleNamespace(
        server=lambda name: None,
        later=lambda effect, for_us, end: None,
        brokers_against=lambda action: ("broker/1",),
        cut_brokers=cut_brokers,
    )
    options = (("from", "broker/1"), ("direction", direction), ("for", 1_000))
    action = Action(0, VERBS["partition"], "broker/0", options=options)

    partition(world, action, FaultEffect(action))

    assert cuts == [("broker/0", ("broker/1",), expected)]
