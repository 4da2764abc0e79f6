"""Finds out whether brokers speak the protocol of 0.7 or of 0.8.

Each protocol has a request that only reads, and that names no partition: the offsets of no
partition in 0.8, fetches from no partition in 0.7. To a broker of 0.7 the first reads as the
second with bytes behind it. Kafka's own ignores these and answers with two bytes, ours closes the
connection; then the second is sent over a new one.
"""

from __future__ import annotations

from watchkeeper.model.log.format import requests
from watchkeeper.model.log.format.errors import NO_ERROR, LogError
from watchkeeper.model.log.format.fields import INT16, INT32
from watchkeeper.model.log.format.requests_08 import OffsetsRequest
from watchkeeper.model.wire_08.table import encode_request
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.addresses import Brokers
from watchkeeper.pipeline.kafkalog.brokers.connection import CLIENT, Connection
from watchkeeper.pipeline.kafkalog.brokers.retries import retried

NUMBER = 7
"""The correlation id that a broker of 0.8 repeats."""
OF_08 = encode_request(OffsetsRequest(()), NUMBER, CLIENT)
OF_07 = requests.encode_request(requests.MultiFetchRequest(()))
ANSWER_08 = b"".join((*INT32.parts(NUMBER), *INT32.parts(0)))
ANSWER_07 = b"".join(INT16.parts(NO_ERROR))
PROBES = ((OF_08, {ANSWER_08: "0.8", ANSWER_07: "0.7"}), (OF_07, {ANSWER_07: "0.7"}))
LIMIT_BYTES = 1024


def protocol_of(brokers: Brokers) -> str:
    """The protocol of brokers, as it is set, or as the first that answers speaks it."""
    if brokers.protocol != "auto":
        return brokers.protocol
    return retried(
        lambda: _detected(brokers), brokers.retry_ms, f"no broker of {brokers} can be reached"
    )


def _detected(brokers: Brokers) -> str:
    failures = []
    for address in brokers.addresses:
        try:
            _check_listens(address.host_port)
            if found := _spoken(address.host_port):
                return found
            _check_listens(address.host_port)  # or it has ended meanwhile
        except OSError as error:
            failures.append(error)
            continue
        raise PipelineProblem(
            f"{address} speaks neither the protocol of Kafka 0.7 nor that of 0.8; expected the "
            "address of a broker"
        )
    raise failures[-1]


def _check_listens(address: str) -> None:
    with Connection(address):
        pass


def _spoken(address: str) -> str | None:
    """The protocol that is spoken at an address; None if neither is."""
    for sent, answers in PROBES:
        try:
            with Connection(address) as connection:
                answer = connection.exchange(sent, LIMIT_BYTES)
        except (OSError, LogError):
            continue
        if answer in answers:
            return answers[answer]
    return None
