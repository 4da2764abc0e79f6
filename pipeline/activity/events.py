"""The events of a site: a topic for each kind, its fields, and its partition key.

A message is an event as JSON. `at_ms` is when it happened; only measurements of hosts are sent
later than that, and carry the time of sending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct


class Event(Struct, frozen=True, gc=False):
    """Something that happened."""

    at_ms: int


class Follow(Event, frozen=True, gc=False):
    """A member follows another from now on."""

    member: int
    followed: int


class View(Event, frozen=True, gc=False):
    """A page was read; `member` is None for a visitor who is no member."""

    address: str
    member: int | None
    page: int


class Search(Event, frozen=True, gc=False):
    """A member searched, and was shown these pages in this order."""

    member: int
    phrase: int
    pages: tuple[int, ...]


class Click(Event, frozen=True, gc=False):
    """A member chose a page of a search result."""

    member: int
    phrase: int
    page: int


class Vote(Event, frozen=True, gc=False):
    """A member rated a page with one to five stars."""

    member: int
    page: int
    stars: int


class Mail(Event, frozen=True, gc=False):
    """A member wrote to another."""

    member: int
    to: int
    text: str


class Metric(Event, frozen=True, gc=False):
    """A host measured something, and sent it at `sent_ms`."""

    sent_ms: int
    host: str
    name: str
    value: int


class Label(Event, frozen=True, gc=False):
    """The ground truth, to measure how good a detection is."""

    until_ms: int
    what: str
    """crawler, spammer or incident."""
    who: str
    """The caller, the member or the host."""


class Topic(NamedTuple):
    """A topic: its events, the columns that Spark reads, and its key."""

    kind: type[Event]
    columns: str
    key: Callable[[Any], str]
    """Events of one key are in one partition, in the order of sending."""


TOPICS = {
    "follows": Topic(
        Follow, "at_ms bigint, member int, followed int", lambda event: str(event.member)
    ),
    "views": Topic(
        View, "at_ms bigint, address string, member int, page int", lambda event: event.address
    ),
    "searches": Topic(
        Search,
        "at_ms bigint, member int, phrase int, pages array<int>",
        lambda event: str(event.member),
    ),
    "clicks": Topic(
        Click, "at_ms bigint, member int, phrase int, page int", lambda event: str(event.member)
    ),
    "votes": Topic(
        Vote, "at_ms bigint, member int, page int, stars int", lambda event: str(event.member)
    ),
    "mails": Topic(
        Mail, "at_ms bigint, member int, to int, text string", lambda event: str(event.member)
    ),
    "metrics": Topic(
        Metric,
        "at_ms bigint, sent_ms bigint, host string, name string, value int",
        lambda event: event.host,
    ),
    "labels": Topic(
        Label, "at_ms bigint, until_ms bigint, what string, who string", lambda event: event.who
    ),
}


def topic_of(event: Event) -> str:
    """The topic that an event is sent to."""
    return _TOPIC_OF[type(event)]


_TOPIC_OF = {topic.kind: name for name, topic in TOPICS.items()}
