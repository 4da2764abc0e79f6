"""The search fields of a scenario file: bounds, and the schedule of a counterexample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import KINDS, FaultKind
from watchkeeper.scenarios.schema.fields import Model, Word

MOST_FAULTS = 8
if TYPE_CHECKING:
    StepName = str
    FaultName = str
else:
    # Literals, so that a wrong word is refused with the words that there are.
    StepName = Literal[tuple(kind.value for kind in StepKind)]
    FaultName = Literal[tuple(kind.value for kind in FaultKind)]


def _bounds_model() -> type[Model]:
    """How large a search may be, and how many faults of each kind it may try."""
    some = Annotated[int, Field(ge=0, le=MOST_FAULTS)]
    fields: dict[str, Any] = {
        kind: (some, Field(0, description="the largest number in a search")) for kind in KINDS
    }
    fields |= {
        "together": (some | None, Field(None, description="the largest number of faults in all")),
        "messages": (
            some,
            Field(0, description="the messages in each partition, to be read and committed"),
        ),
        "begin": (
            Literal["fresh", "settled"],
            Field(
                "fresh",
                description="whether consumers, and brokers that elect a controller, start in "
                "the search (fresh) or before it",
            ),
        ),
        "consumers": (
            Annotated[int, Field(ge=1)] | None,
            Field(None, description="the largest number in each group"),
        ),
        "partitions": (
            Annotated[int, Field(ge=1)] | None,
            Field(None, description="the largest number in all topics together"),
        ),
        "brokers": (
            Annotated[int, Field(ge=1)] | None,
            Field(None, description="the largest number in the cluster"),
        ),
    }
    return create_model("Bounds", __base__=Model, **fields)


class ReadModel(Model):
    """A read that followed in the same step."""

    operation: Word = Field(description="the operation")
    answer: Any = Field(None, description="its result")


class StepModel(Model):
    """A step of a schedule: an action of a process, or a fault that strikes it."""

    node: Word = Field(description="the process")
    does: StepName = Field(description="the kind of step")
    then: StepName | None = Field(None, description="the fault that ends the step")
    fault: FaultName | None = Field(None, description="the fault that it takes from the bounds")
    operation: str = Field("", description="the request")
    answer: Any = Field(None, description="its result")
    reads: list[ReadModel] = Field(
        default_factory=list, description="reads that followed in the same step"
    )


class ScheduleModel(Model):
    """The exact steps of a counterexample."""

    violates: str = Field("", description="the property that it violates")
    steps: list[StepModel] = Field(description="the steps, in order")
    cycle: list[StepModel] = Field(
        default_factory=list, description="the steps that then repeat for ever"
    )


BoundsModel = _bounds_model()
