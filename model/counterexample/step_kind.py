"""The kinds of steps that the checker explores and a replay follows.

A kind is the plain word that scenario files hold (`does: late request`); `text` is the
sentence that people read. A step may end in a fault that follows within it, before the reads
that were folded into the step are complete: then it has two kinds, see `text_of`.
"""

from __future__ import annotations

from enum import StrEnum


class StepKind(StrEnum):
    """What one step of one process is."""

    START = "start"
    CRASH = "crash"
    ABANDON = "abandon"
    """The program ends without closing its session, which its process keeps alive."""
    LEAVE = "leave"
    REPLY = "reply"
    """A request is executed and its reply arrives."""
    LOST_REQUEST = "lost request"
    """The connection breaks before the request under way is executed."""
    LOST_REPLY = "lost reply"
    """The connection breaks after the request under way is executed."""
    DELAYED_REQUEST = "delayed request"
    """The connection breaks, and the request under way may be executed later."""
    LATE_REQUEST = "late request"
    """A delayed request is executed."""
    NOTIFICATION = "notification"
    EMPTY_POLL = "empty poll"
    TIMER = "timer"
    SLEEP = "sleep"
    DISCONNECT = "disconnect"
    RECONNECT = "reconnect"
    NEW_SESSION = "new session"
    CLOSE_SESSION = "close session"
    SESSION_EXPIRED = "session expired"
    """The service ends the session of a process that runs."""
    OLD_SESSION_EXPIRED = "old session expired"
    """The service ends a session that an earlier life of the process has left open."""
    EXPIRY_ON_RECONNECT = "expiry on reconnect"
    EXPIRY_ON_REQUEST = "expiry on request"
    STOP_FETCHING = "stop fetching"
    READ_MESSAGE = "read message"
    CHANGE_TOPIC = "change topic"
    """A broker, or the administrator, receives the order to create, grow or delete a topic."""

    @property
    def text(self) -> str:
        """What the process does or suffers, as the verb phrase after its name."""
        return _TEXT[self]


_TEXT = {
    StepKind.START: "starts",
    StepKind.CRASH: "is killed",
    StepKind.ABANDON: "ends and leaves its session open",
    StepKind.LEAVE: "receives the order to leave",
    StepKind.REPLY: "is answered",
    StepKind.LOST_REQUEST: "loses a request",
    StepKind.LOST_REPLY: "loses a reply",
    StepKind.DELAYED_REQUEST: "leaves a request behind",
    StepKind.LATE_REQUEST: "has a request arrive late",
    StepKind.NOTIFICATION: "receives a notification",
    StepKind.EMPTY_POLL: "finds no notification yet",
    StepKind.TIMER: "is woken by its timer",
    StepKind.SLEEP: "has slept",
    StepKind.DISCONNECT: "is disconnected",
    StepKind.RECONNECT: "is connected again",
    StepKind.NEW_SESSION: "gets a session",
    StepKind.CLOSE_SESSION: "closes its session",
    StepKind.SESSION_EXPIRED: "loses its session",
    StepKind.OLD_SESSION_EXPIRED: "loses an earlier session",
    StepKind.EXPIRY_ON_RECONNECT: "finds its session dead when it reconnects",
    StepKind.EXPIRY_ON_REQUEST: "is answered that its session is dead",
    StepKind.STOP_FETCHING: "stops fetching",
    StepKind.READ_MESSAGE: "reads a message",
    StepKind.CHANGE_TOPIC: "receives the order to",
}


def text_of(does: StepKind, then: StepKind | None = None) -> str:
    """Return the verb phrase of a step, with the fault that follows within it if one does."""
    return does.text if then is None else f"{does.text}, then {then.text}"
