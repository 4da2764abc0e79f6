"""What passes between a ZooKeeper in a process of its own and the process that started it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from watchkeeper.model.ensemble.settings import EnsembleSettings

STOP = "stop"
"""The verb that ends the process; an end of its input without it is the death of its parent."""
RECORD = "record"
"""The verb that returns the rows of `write_record`."""


class Order(Struct, frozen=True, kw_only=True):
    """What the process serves."""

    ports: tuple[int, ...]
    """A port for each server."""
    settings: EnsembleSettings
    data: str | None = None
    """The folder in which writes are durable; None for the memory alone."""
    removed: str | None = None
    """The folder that must not outlive the process that has started this one."""
    has_record: bool = False
    """Whether it keeps a record of what is committed."""
    has_history: bool = False
    """Whether it keeps the trace of all requests."""


class Request(Struct, frozen=True):
    """A verb of `control`."""

    verb: str
    arguments: dict[str, Any]


class Result(Struct, frozen=True, omit_defaults=True):
    """The result of a verb, or the sentence why it was not carried out."""

    value: Any = None
    error: str | None = None
