"""What every model of a scenario file is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Word = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class Model(BaseModel):
    """A part of a file: nothing but the fields it knows."""

    model_config = ConfigDict(extra="forbid", strict=True)
