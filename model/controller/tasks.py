"""What a controller has to do, as tasks that wait in line."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Task(StrEnum):
    """What a controller has to do."""

    ELECT = "elect"
    SESSION_ENDED = "session ended"
    CONTROLLER_CHANGED = "controller changed"
    BROKERS_CHANGED = "brokers changed"
    TOPICS_CHANGED = "topics changed"
    ASSIGNMENT_CHANGED = "assignment changed"
    STATE_CHANGED = "state changed"
    REASSIGNMENT = "reassignment requested"
    PREFERRED = "preferred election requested"
    DELETIONS = "deletions requested"
    ISRS_CHANGED = "ISRs changed"
    SERVE = "serve requests"
    BALANCE = "let the next preferred replica lead"


class Due(NamedTuple):
    """A task that waits."""

    task: Task
    topic: str = ""
    """For an assignment: of which topic."""
    partition: str = ""
    """For a state: of which partition of the topic."""
    is_late: bool = False
    """Whether it was queued in a reign that is over."""
