"""The errors of clients; the text of each is a sentence with the reason."""

from __future__ import annotations


class ClientError(Exception):
    """A client cannot perform an operation."""

    meaning = "the client cannot do that"

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what, detail)
        self.what = what
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.what}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


class InvalidConfig(ClientError, ValueError):
    """Settings are missing, contradictory or invalid."""

    meaning = "the configuration of a client is invalid"


class InvalidPartition(ClientError):
    """A partitioner chose a partition that does not exist."""

    meaning = "the partitioner chose a partition that is not there"


class InvalidKey(ClientError):
    """A partitioner does not support the type of a key."""

    meaning = "the partitioner cannot choose by it"


class NoBrokersForPartition(ClientError):
    """No live broker has a partition for the messages."""

    meaning = "no broker that is alive has a partition for it"


class UnavailableProducer(ClientError):
    """The pool has no sender for a broker."""

    meaning = "there is no producer for this broker"


class QueueFull(ClientError):
    """The queue of an asynchronous producer stayed full for `queue.enqueueTimeout.ms`."""

    meaning = "the queue has no room for more messages"


class QueueClosed(ClientError):
    """The producer is closed."""

    meaning = "the producer was closed and takes no more messages"


class ConsumerTimeout(ClientError):
    """No message arrived in time; the stream stays usable."""

    meaning = "no message came in the time of consumer.timeout.ms"
