"""Generates the activity of a site, in the order of sending.

Actions of members are spread evenly over the time; crawlers, spammers and slow hosts appear at
times of their own. Everything follows from the settings and a seed. Events are generated
lazily, so that there can be any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush, merge
from itertools import chain

import msgspec

from watchkeeper.pipeline.activity.events import (
    Click,
    Event,
    Follow,
    Label,
    Mail,
    Metric,
    Search,
    View,
    Vote,
)
from watchkeeper.pipeline.activity.random_draws import Chance, Weighted, zipf
from watchkeeper.pipeline.activity.settings import Activity

HOUR_MS = 3_600_000
SHOWN = 5
"""How many pages a search shows."""
CLICK_PER_CENT = (40, 25, 15, 8, 4)
"""The chance of a click at each place, if no place above was clicked."""
CLICK_AFTER_MS = 4_000
USUAL_MS, SLOW_MS = 120, 900
"""The latency of a host: usual, and during an incident."""
LOST_MS = 2 * HOUR_MS
GREETINGS = ("happy new year", "see you at 8", "thanks again", "have a look at page 12")
SPAM = "cheap watches, only {} dollars"
"""The text of a spammer, each time with another number."""


def lasts_ms(site: Activity, events: int) -> int:
    """The duration of so many actions of members."""
    return max(events * HOUR_MS // site.events_an_hour, 1)


def generated(site: Activity, seed: int, events: int) -> Iterator[Event]:
    """Every event during so many actions of members, in the order of sending."""
    until_ms = site.begins_ms + lasts_ms(site, events)
    labels = sorted(labels_of(site, seed, until_ms), key=lambda label: (label.at_ms, label.who))
    members = Members(site, seed)
    streams = [members.beginnings(), members.doings(events)]
    for number, label in enumerate(labels):
        if label.what == "crawler":
            streams.append(_crawl(site, label, seed, number))
        elif label.what == "spammer":
            streams.append(_spam(site, label, seed, number))
    slow = [label for label in labels if label.what == "incident"]
    streams.append(_in_order(_metrics(site, seed, until_ms, slow)))
    return chain(labels, merge(*streams, key=sent_ms))


def sent_ms(event: Event) -> int:
    """When an event is sent."""
    return event.sent_ms if isinstance(event, Metric) else event.at_ms


# --- what really is the case -----------------------------------------------------------


def labels_of(site: Activity, seed: int, until_ms: int) -> Iterator[Label]:
    """The crawlers, spammers and slow hosts, with their times."""
    chance = Chance(seed, "labels")

    def label(what: str, who: str, takes_ms: int) -> Label:
        latest = max(until_ms - site.begins_ms - takes_ms, 1)
        at_ms = site.begins_ms + chance.below(latest)
        return Label(at_ms, at_ms + takes_ms, what, who)

    crawlers, spammers, hosts = site.crawlers, site.spammers, site.hosts
    for number in range(crawlers.count):
        takes_ms = crawlers.pages * crawl_pause_ms(site, number)
        yield label("crawler", f"203.0.113.{number}", takes_ms)
    for number in range(spammers.count):
        who = str(site.members - number)  # the least active members
        yield label("spammer", who, spammers.mails * spammers.pause_ms)
    for number in range(hosts.incidents if hosts.count else 0):
        yield label("incident", f"web{number % hosts.count}", hosts.incident_ms)


def crawl_pause_ms(site: Activity, number: int) -> int:
    """How long a crawler waits after each page."""
    return site.crawlers.slow_pause_ms if number % 2 else site.crawlers.pause_ms


# --- members ---------------------------------------------------------------------------


class Members:
    """The actions of members, by rank: member 1 is the most active."""

    def __init__(self, site: Activity, seed: int) -> None:
        self.site = site
        self._who = Chance(seed, "members")
        self._what = Chance(seed, "doings")
        self._when = Chance(seed, "moments")
        ranks = site.zipf
        self._members = zipf(site.members, ranks.members)
        self._followed = zipf(site.members, ranks.followed)
        self._pages = zipf(site.pages, ranks.pages)
        self._phrases = zipf(site.phrases, ranks.phrases)
        self._actions: tuple[tuple[int, Callable[[int, int], Iterator[Event]]], ...] = (
            (site.shares.views, self._views),
            (site.shares.searches, self._searches),
            (site.shares.votes, self._votes),
            (site.shares.mails, self._mails),
            (site.shares.follows, self._follows),
        )

    def beginnings(self) -> Iterator[Event]:
        """The follows that exist from the start."""
        for member in range(1, self.site.members + 1):
            for _ in range(self.site.follows):
                yield from self._follows(self.site.begins_ms, member)

    def doings(self, count: int) -> Iterator[Event]:
        """So many actions, with the clicks that follow from them, in order."""
        return _in_order(self._all(count))

    def _all(self, count: int) -> Iterator[tuple[int, list[Event]]]:
        """Each moment, and the events that start at it."""
        chosen = Weighted([share for share, _ in self._actions])
        at_ms = self.site.begins_ms
        gap_ms = max(2 * HOUR_MS // self.site.events_an_hour, 1)
        for _ in range(count):
            at_ms += self._when.below(gap_ms)
            member = self._members.draw(self._who) + 1
            _, action = self._actions[chosen.draw(self._what)]
            yield at_ms, list(action(at_ms, member))

    def _views(self, at_ms: int, member: int) -> Iterator[Event]:
        address = f"198.51.100.{(member - 1) // self.site.members_an_address}"
        yield View(at_ms, address, member, self._page())

    def _searches(self, at_ms: int, member: int) -> Iterator[Event]:
        phrase = self._phrases.draw(self._what) + 1
        first = phrase * SHOWN % self.site.pages
        pages = tuple((first + place) % self.site.pages + 1 for place in range(SHOWN))
        yield Search(at_ms, member, phrase, pages)
        for page, per_cent in zip(pages, CLICK_PER_CENT, strict=True):
            if self._what.per_cent(per_cent):
                yield Click(at_ms + CLICK_AFTER_MS, member, phrase, page)
                return

    def _votes(self, at_ms: int, member: int) -> Iterator[Event]:
        page = self._page()
        stars = min(max(1 + page % 5 + self._what.below(3) - 1, 1), 5)
        yield Vote(at_ms, member, page, stars)

    def _mails(self, at_ms: int, member: int) -> Iterator[Event]:
        text = GREETINGS[self._what.below(len(GREETINGS))]
        yield Mail(at_ms, member, self._what.below(self.site.members) + 1, text)

    def _follows(self, at_ms: int, member: int) -> Iterator[Event]:
        followed = self._followed.draw(self._who) + 1
        if followed != member:
            yield Follow(at_ms, member, followed)

    def _page(self) -> int:
        return self._pages.draw(self._what) + 1


# --- what goes wrong -------------------------------------------------------------------


def _crawl(site: Activity, label: Label, seed: int, number: int) -> Iterator[Event]:
    """Page after page, without being a member."""
    first = Chance(seed, f"crawl {number}").below(site.pages)
    pause_ms = (label.until_ms - label.at_ms) // site.crawlers.pages
    for place in range(site.crawlers.pages):
        page = (first + place) % site.pages + 1
        yield View(label.at_ms + place * pause_ms, label.who, None, page)


def _spam(site: Activity, label: Label, seed: int, number: int) -> Iterator[Event]:
    """One text, with changing numbers, to one member after the other."""
    chance = Chance(seed, f"spam {number}")
    first, member = chance.below(site.members), int(label.who)
    for place in range(site.spammers.mails):
        to = (first + place) % site.members + 1
        text = SPAM.format(chance.below(1000))
        yield Mail(label.at_ms + place * site.spammers.pause_ms, member, to, text)


def _metrics(
    site: Activity, seed: int, until_ms: int, slow: list[Label]
) -> Iterator[tuple[int, list[Event]]]:
    """The measurements of each host; some are sent late."""
    chance, hosts = Chance(seed, "metrics"), site.hosts
    for at_ms in range(site.begins_ms, until_ms, hosts.every_ms):
        measured: list[Event] = []
        for number in range(hosts.count):
            host = f"web{number}"
            is_slow = any(
                label.who == host and label.at_ms <= at_ms < label.until_ms for label in slow
            )
            about = SLOW_MS if is_slow else USUAL_MS
            value = about + chance.below(about // 2)
            after_ms = chance.below(hosts.late_ms) if chance.per_cent(hosts.late_per_cent) else 0
            if chance.below(1000) < hosts.lost_per_mille:
                after_ms = LOST_MS
            measured.append(Metric(at_ms, at_ms + after_ms, host, "latency_ms", value))
        yield at_ms, measured


def _in_order(moments: Iterator[tuple[int, list[Event]]]) -> Iterator[Event]:
    """The events of all moments, in the order of sending."""
    waiting: list[tuple[int, int, Event]] = []
    count = 0
    for at_ms, begun in moments:
        for event in begun:
            heappush(waiting, (sent_ms(event), count, event))
            count += 1
        while waiting and waiting[0][0] < at_ms:
            yield heappop(waiting)[2]
    while waiting:
        yield heappop(waiting)[2]


def encoded(event: Event) -> bytes:
    """An event as the payload of a message."""
    return msgspec.json.encode(event)
