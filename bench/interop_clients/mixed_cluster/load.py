"""A load on a topic, one message after the other, and what of it has to be in the logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread

from bench.interop_clients.mixed_cluster.replica_logs import PartitionLog
from bench.interop_clients.outcome import expect

from watchkeeper import Producer

RETRIES = 300
COUNT = 400


class Load:
    """Sends numbered messages with `acks` -1, and remembers which were acknowledged."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._topic = topic
        self._config = {
            "metadata.broker.list": brokers,
            "request.required.acks": -1,
            "request.timeout.ms": 3000,
            "message.send.max.retries": RETRIES,
        }
        self.acknowledged: list[bytes] = []
        self._error: Exception | None = None

    def run(self, strike: Callable[[], None]) -> None:
        """Send them all; something happens in the midst of them."""
        sending = Thread(target=self._send)
        sending.start()
        while len(self.acknowledged) < COUNT // 3 and sending.is_alive():
            sending.join(0.01)
        was_under_way = sending.is_alive()
        strike()
        sending.join()
        if self._error is not None:
            raise self._error
        expect(was_under_way, True, "messages were under way")

    def _send(self) -> None:
        try:
            with Producer(self._config, protocol="0.8") as producer:
                for number in range(COUNT):
                    message = b"%06d" % number
                    producer.send(self._topic, message, key=f"key {number % 7}")
                    self.acknowledged.append(message)
        except Exception as error:
            self._error = error

    def check(self, logs: Mapping[int, PartitionLog]) -> str:
        """Nothing acknowledged is lost, and the order of first appearances is that of sending."""
        seen: dict[bytes, None] = {}
        copies = 0
        for log in logs.values():
            values = [message.value for message in log.messages if message.value is not None]
            first = {*values} & {*self.acknowledged}
            mine = [value for value in dict.fromkeys(values) if value in first]
            expect(mine, sorted(mine), "the order in a partition")
            copies += sum(1 for value in values if value in first) - len(mine)
            seen |= dict.fromkeys(mine)
        expect([one for one in self.acknowledged if one not in seen], [], "lost messages")
        return f"{len(self.acknowledged)} acknowledged, none lost, {copies} twice"
