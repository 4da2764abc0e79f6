"""The base class of all models of a scenario file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema

Word = Annotated[str, StringConstraints(min_length=1, max_length=400)]


def _as_text(value: Any) -> Any:
    return str(value) if type(value) is int else value


Seeds = Annotated[
    Word,
    BeforeValidator(_as_text),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
"""The seeds of a sweep: how many, or FIRST..LAST."""


class Model(BaseModel):
    """A part of a file; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)
