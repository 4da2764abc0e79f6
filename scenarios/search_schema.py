"""What a scenario file may say of a search: its bounds, and the schedule of a counterexample."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from model.bounds import KINDS
from scenarios.fields import Model, Word

MOST_FAULTS = 8


def _bounds_model() -> type[Model]:
    """How large a search may be, and how many faults of each kind it may try."""
    some = Annotated[int, Field(ge=0, le=MOST_FAULTS)]
    fields: dict[str, Any] = {
        kind: (some, Field(0, description="how many in a search")) for kind in KINDS
    }
    fields |= {
        "together": (some | None, Field(None, description="how many faults in all")),
        "messages": (some, Field(0, description="in each partition, to be read and committed")),
        "begin": (
            Literal["fresh", "settled"],
            Field("fresh", description="whether consumers start in the search or before it"),
        ),
        "consumers": (
            Annotated[int, Field(ge=1)] | None,
            Field(None, description="of each group at most"),
        ),
        "partitions": (
            Annotated[int, Field(ge=1)] | None,
            Field(None, description="of all topics together at most"),
        ),
    }
    return create_model("Bounds", __base__=Model, **fields)


class ReadModel(Model):
    """A read that followed in the same step."""

    operation: Word = Field(description="what was asked")
    answer: Any = Field(None, description="what was answered")


class StepModel(Model):
    """A step of a schedule: what a process did, or what befell it."""

    node: Word = Field(description="who")
    does: Word = Field(description="in the words of the exploration")
    fault: str = Field("", description="the kind of fault it was drawn from")
    operation: str = Field("", description="what was asked")
    answer: Any = Field(None, description="what was answered")
    reads: list[ReadModel] = Field(
        default_factory=list, description="reads that followed in the same step"
    )


class ScheduleModel(Model):
    """The exact steps of a counterexample."""

    violates: str = Field("", description="the property that it violates")
    steps: list[StepModel] = Field(description="one after the other")
    circle: list[StepModel] = Field(
        default_factory=list, description="what then comes again and again for ever"
    )


BoundsModel = _bounds_model()
