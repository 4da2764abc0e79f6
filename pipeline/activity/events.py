"""The events of a site: a topic for each kind, its fields, and what chooses its partition.

A message is an event as JSON. `at_ms` is when it happened; only what hosts measure is sent
later than it happened, and says when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct


class Event(Struct, frozen=True, gc=False):
    """Something that happened."""

    at_ms: int


class Follow(Event, frozen=True, gc=False):
    """A member wants to hear of another from now on."""

    member: int
    followed: int


class View(Event, frozen=True, gc=False):
    """A page was read; by somebody who is no member if `member` is None."""

    address: str
    member: int | None
    page: int


class Search(Event, frozen=True, gc=False):
    """A member searched, and was shown these pages in this order."""

    member: int
    phrase: int
    pages: tuple[int, ...]


class Click(Event, frozen=True, gc=False):
    """A member chose one of the pages that a search has shown."""

    member: int
    phrase: int
    page: int


class Vote(Event, frozen=True, gc=False):
    """A member gave a page one to five stars."""

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
    """What really was the case, for whoever wants to know how good a detection is."""

    until_ms: int
    what: str
    """crawler, spammer or incident."""
    who: str
    """The caller, the member or the host."""


class Topic(NamedTuple):
    """A topic: what its events are, the columns that Spark reads, and what keeps together."""

    kind: type[Event]
    columns: str
    key: Callable[[Any], str]
    """Events of one key are in one partition, in the order in which they were sent."""


TOPICS = {
    "follows": Topic(
        Follow, "at_ms bigint, member int, followed int", lambda one: str(one.member)
    ),
    "views": Topic(
        View, "at_ms bigint, address string, member int, page int", lambda one: one.address
    ),
    "searches": Topic(
        Search,
        "at_ms bigint, member int, phrase int, pages array<int>",
        lambda one: str(one.member),
    ),
    "clicks": Topic(
        Click, "at_ms bigint, member int, phrase int, page int", lambda one: str(one.member)
    ),
    "votes": Topic(
        Vote, "at_ms bigint, member int, page int, stars int", lambda one: str(one.member)
    ),
    "mails": Topic(
        Mail, "at_ms bigint, member int, to int, text string", lambda one: str(one.member)
    ),
    "metrics": Topic(
        Metric,
        "at_ms bigint, sent_ms bigint, host string, name string, value int",
        lambda one: one.host,
    ),
    "labels": Topic(
        Label, "at_ms bigint, until_ms bigint, what string, who string", lambda one: one.who
    ),
}


def topic_of(event: Event) -> str:
    """The topic that an event is sent to."""
    return _TOPIC_OF[type(event)]


_TOPIC_OF = {topic.kind: name for name, topic in TOPICS.items()}
