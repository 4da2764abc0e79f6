"""The high-level consumer: it makes the streams, and the group member that feeds them.

    connector = Connector(consumer, listener)
    streams = connector.create_message_streams({"clicks": 2, "views": 1})

The member is a program (`connector.program`). Its world runs it, and answers its fetch effects
with `connector.fetcher`. All topics of one call are in one registration, so that they cost one
rebalance together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import LEAVE, Command, CommandKind
from watchkeeper.model.actor.orders import give
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.tasks import Remind, put, take
from watchkeeper.model.clients.consumer.fetcher import Fetcher, FindLeader
from watchkeeper.model.clients.consumer.positions import FetchListener
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.group.consumer import consumer
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.registry.subscription import Pattern, Subscription
from watchkeeper.model.registry.topic_filter import BadFilter, topic_filter

COMMITTING = "a commit is under way"
"""The queue that serializes the commits of an application's tasks."""


def no_leader(partition: Partition) -> str:
    """Return no address: a `Fetch` names it, or a task of the fetcher finds it."""
    return ""


class Connector:
    """One consumer: its streams, its fetcher, and its member of the group."""

    fetcher_class: type[Fetcher] = Fetcher
    stream_class: type[Stream] = Stream

    def __init__(
        self, me: Consumer, listener: FetchListener, *, find_leader: FindLeader = no_leader
    ) -> None:
        self.me = me
        self.listener = listener
        self.streams: dict[str, Stream] = {}
        """Queue -> its stream."""
        self.fetcher = self.fetcher_class(me, listener, self.queue_for, find_leader)
        self._orders = 0

    # --- streams -------------------------------------------------------------------------

    def create_message_streams(self, counts: Mapping[str, int]) -> dict[str, list[Stream]]:
        """Create this number of streams for each topic (topic -> number of streams).

        Raises `InvalidConfig` for a topic without a stream, and for a second call.
        """
        wrong = [topic for topic, count in counts.items() if count < 1]
        if wrong or not counts:
            detail = f"no stream of {', '.join(wrong)}" if wrong else "no topic"
            raise InvalidConfig("streams", f"{detail}; each topic needs at least one")
        self._subscribe(Subscription(streams=tuple(counts.items())))
        return {
            topic: [self._stream(topic, number) for number in range(count)]
            for topic, count in counts.items()
        }

    def create_message_streams_by_filter(
        self, expression: str, count: int, pattern: Pattern = "white_list"
    ) -> list[Stream]:
        """Create streams that all topics share which the filter allows, now or later.

        Raises `InvalidConfig` for an invalid filter, and for a second call.
        """
        if count < 1 or pattern == "static":
            raise InvalidConfig("streams", "a filter needs at least one stream, and a list")
        subscription = Subscription(pattern=pattern, expression=expression, filter_streams=count)
        try:
            topic_filter(subscription).allows("a-topic")
        except BadFilter as error:
            raise InvalidConfig("streams", str(error)) from None
        self._subscribe(subscription)
        return [self._stream("", number) for number in range(count)]

    def _subscribe(self, subscription: Subscription) -> None:
        if self.streams:
            raise InvalidConfig(
                "streams", "they were created already; name all topics in one call"
            )
        self.me = replace(self.me, subscription=subscription)

    def _stream(self, topic: str, number: int) -> Stream:
        queue = self.queue_for(topic, number)
        stream = self.stream_class(queue, self.me.settings, self.listener)
        self.streams[queue] = stream
        return stream

    def queue_for(self, topic: str, number: int) -> str:
        """Return the queue of stream `number` of a topic.

        With a filter all topics share the streams: stream 0 of each topic is the same one.
        """
        return f"stream {number} of {'all' if self.me.subscription.is_filter else topic}"

    # --- the member ----------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The program of the group member."""
        return consumer(self.me)

    async def commit_offsets(self, timeout_ms: int | None = None) -> bool:
        """Commit the positions of the streams; return whether the commit is known to be done.

        The member commits between two of its turns, so that no commit overlaps with a
        rebalance. Tasks that commit at the same time wait for each other.
        """
        if not await put(COMMITTING, True, 1, timeout_ms=timeout_ms):
            return False
        self._orders += 1
        order = Command(CommandKind.COMMIT, ticket=self._orders)
        is_done = await give(order, timeout_ms=timeout_ms)
        await take(COMMITTING)
        return is_done

    async def shutdown(self) -> None:
        """End the streams, and make the member commit and leave the group."""
        for stream in self.streams.values():
            await stream.close()
        await Remind(LEAVE)
