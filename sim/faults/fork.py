"""A run that goes the way of another one up to some event, and its own way from there.

At that event every stream of chance begins anew from another seed. What was drawn before, and
has not come about yet, comes about as it was drawn: a message that is under way arrives when
it would have. So the events up to there are the same, and everything that is left to chance
after it is drawn afresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from watchkeeper.model.trace.trace import Row

if TYPE_CHECKING:
    from watchkeeper.sim.engine.kernel import Kernel


class Branch(NamedTuple):
    """Where a run leaves another one, and which way it goes."""

    events: int
    """How many events are the same; 0: none has to be."""
    seed: int


class _Rows(list[Row]):
    """The rows of a trace; at a certain one chance begins anew."""

    def __init__(self, kernel: Kernel, branch: Branch) -> None:
        super().__init__()
        self.kernel = kernel
        self.branch = branch

    def append(self, row: Row, /) -> None:
        super().append(row)
        if len(self) == self.branch.events:
            self.kernel.streams.begin_anew(self.branch.seed)
            self.kernel.rows = list(self)


def branch_off(kernel: Kernel, branch: Branch) -> None:
    """Let a run that is about to begin leave its way at an event."""
    assert not kernel.rows, "a run that has begun cannot branch off any more"
    if branch.events == 0:
        kernel.streams.begin_anew(branch.seed)
    else:
        kernel.rows = _Rows(kernel, branch)
