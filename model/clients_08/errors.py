"""The errors of clients of 0.8."""

from __future__ import annotations

from watchkeeper.model.clients.errors import ClientError
from watchkeeper.model.log.format.requests_08 import error_name


class FailedToSendMessage(ClientError):
    """Messages could not be sent, also after `message.send.max.retries`."""

    meaning = "messages could not be sent"


class RefusedByBroker(ClientError):
    """A broker has answered with an error code."""

    meaning = "the broker answers an error"

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what, error_name(code))
        self.code = code
