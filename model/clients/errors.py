"""What clients refuse to do, and why: each error is a sentence."""

from __future__ import annotations


class ClientError(Exception):
    """A client cannot do what it was asked for."""

    meaning = "the client cannot do that"

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what, detail)
        self.what = what
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.what}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


class InvalidConfig(ClientError, ValueError):
    """Settings are missing, contradict one another, or cannot be understood."""

    meaning = "a client cannot be set up so"


class InvalidPartition(ClientError):
    """A partitioner named a partition that there is not."""

    meaning = "the partitioner chose a partition that is not there"


class InvalidKey(ClientError):
    """A partitioner cannot choose by this key."""

    meaning = "the partitioner cannot choose by it"


class NoBrokersForPartition(ClientError):
    """There is no broker to which the messages could be sent."""

    meaning = "no broker that is alive has a partition for it"


class UnavailableProducer(ClientError):
    """The pool has no producer for a broker."""

    meaning = "there is no producer for this broker"


class QueueFull(ClientError):
    """The queue of an asynchronous producer had no room in time."""

    meaning = "the queue has no room for more messages"


class QueueClosed(ClientError):
    """An asynchronous producer was closed."""

    meaning = "the producer was closed and takes no more messages"


class ConsumerTimeout(ClientError):
    """No message came in time; the stream can be read on."""

    meaning = "no message came in the time of consumer.timeout.ms"
