"""The door to a consumer group: it makes the streams, and the member that feeds them.

    connector = Connector(consumer, journal)
    streams = connector.create_message_streams({"clicks": 2, "views": 1})

The member is a program (`connector.program`); its world runs it, and answers what it asks of
the fetching side with `connector.fetching`. All topics of one call are in one registration,
so they cost one rebalance together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from model.answers import LEAVE, Order, Ordered
from model.asks import Partition
from model.clients.errors import InvalidConfig
from model.clients.fetching import Fetching, Find
from model.clients.places import Journal
from model.clients.streams import Stream
from model.consumer import consumer
from model.filters import BadFilter, topic_filter
from model.member import Consumer
from model.offsets import COMMITTED, Committed
from model.program import Program
from model.subscriptions import Pattern, Subscription
from model.threads import Remind, put, take

COMMITTING = "a commit is under way"
"""The queue that lets one thread at a time order a commit."""


def nobody(partition: Partition) -> str:
    """No partition is led by anybody: in the 0.7 layout its broker is told with each fetch."""
    return ""


class Connector:
    """One consumer: its streams, its fetching side, and its member of the group."""

    fetching_class: type[Fetching] = Fetching
    stream_class: type[Stream] = Stream

    def __init__(self, me: Consumer, journal: Journal, *, find: Find = nobody) -> None:
        self.me = me
        self.journal = journal
        self.streams: dict[str, Stream] = {}
        """Queue -> the stream that it feeds."""
        self.fetching = self.fetching_class(me, journal, self.queue_for, find)
        self._orders = 0

    # --- streams -------------------------------------------------------------------------

    def create_message_streams(self, wanted: Mapping[str, int]) -> dict[str, list[Stream]]:
        """So many streams of each of these topics."""
        wrong = [topic for topic, count in wanted.items() if count < 1]
        if wrong or not wanted:
            detail = f"no stream of {', '.join(wrong)}" if wrong else "no topic"
            raise InvalidConfig("streams", f"{detail}; each topic needs at least one")
        self._subscribe(Subscription(streams=tuple(wanted.items())))
        return {
            topic: [self._stream(topic, number) for number in range(count)]
            for topic, count in wanted.items()
        }

    def create_message_streams_by_filter(
        self, expression: str, count: int, pattern: Pattern = "white_list"
    ) -> list[Stream]:
        """So many streams, shared by all topics that a filter allows, now or later."""
        if count < 1 or pattern == "static":
            raise InvalidConfig("streams", "a filter needs at least one stream, and a list")
        wanted = Subscription(pattern=pattern, expression=expression, filter_streams=count)
        try:
            topic_filter(wanted).allows("a-topic")
        except BadFilter as error:
            raise InvalidConfig("streams", str(error)) from None
        self._subscribe(wanted)
        return [self._stream("", number) for number in range(count)]

    def _subscribe(self, wanted: Subscription) -> None:
        if self.streams:
            raise InvalidConfig(
                "streams", "they were created already; name all topics in one call"
            )
        self.me = replace(self.me, subscription=wanted)

    def _stream(self, topic: str, number: int) -> Stream:
        queue = self.queue_for(topic, number)
        stream = self.stream_class(queue, self.me.settings, self.journal)
        self.streams[queue] = stream
        return stream

    def queue_for(self, topic: str, number: int) -> str:
        """The queue that the partitions of a topic's stream of this number go to.

        With a filter the streams are shared: the first of each topic is the first of all.
        """
        return f"stream {number} of {'all' if self.me.subscription.is_filter else topic}"

    # --- the member ----------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The program of the member."""
        return consumer(self.me)

    async def commit_offsets(self, timeout_ms: int | None = None) -> bool:
        """Commit where the streams stand; whether that was done, as far as it is known in time.

        The member does it between two other things, so that no commit falls into a
        rebalance. Threads that commit at once wait for one another.
        """
        if not await put(COMMITTING, True, 1, timeout_ms=timeout_ms):
            return False
        self._orders += 1
        number = self._orders
        await Remind(Ordered(Order.COMMIT, number=number))
        done: Committed | None = await take(COMMITTED, timeout_ms=timeout_ms)
        while done is not None and done.number < number:  # of a commit that was late
            done = await take(COMMITTED, timeout_ms=timeout_ms)
        await take(COMMITTING)
        return done is not None and done.is_done

    async def shutdown(self) -> None:
        """End the streams, and let the member commit and leave the group."""
        for stream in self.streams.values():
            await stream.close()
        await Remind(LEAVE)
