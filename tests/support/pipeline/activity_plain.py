"""What the jobs on activity have to answer, worked out in plain Python from the same events."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

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
    topic_of,
)
from watchkeeper.pipeline.activity.settings import Rules

Row = tuple[Any, ...]
Some = TypeVar("Some", bound=Event)


def of(kind: type[Some], events: Iterable[Event]) -> list[Some]:
    """The events of a kind."""
    return [event for event in events if isinstance(event, kind)]


def moment(at_ms: int) -> datetime:
    """A moment as Spark has it."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


# --- feed and relevance ----------------------------------------------------------------


def feed(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    since: dict[tuple[int, int], int] = {}
    for event in of(Follow, events):
        key = (event.followed, event.member)
        since[key] = min(event.at_ms, since.get(key, event.at_ms))
    readers = defaultdict(list)
    for (followed, reader), at_ms in since.items():
        readers[followed].append((reader, at_ms))
    news = [
        (event.at_ms, event.member, f"gave page {event.page} {event.stars} of 5 stars")
        for event in of(Vote, events)
    ]
    news += [
        (event.at_ms, event.member, f"follows member {event.followed}")
        for event in of(Follow, events)
    ]
    for at_ms, member, what in news:
        for reader, from_ms in readers[member]:
            if from_ms <= at_ms:
                yield reader, moment(at_ms), member, what


def click_through(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    shown = Counter((event.phrase, page) for event in of(Search, events) for page in event.pages)
    clicked = Counter((event.phrase, event.page) for event in of(Click, events))
    for phrase, page in shown.keys() | clicked.keys():
        times, chosen = shown[phrase, page], clicked[phrase, page]
        yield phrase, page, times, chosen, chosen / times if times else None


def ratings(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    votes = defaultdict(list)
    for event in of(Vote, events):
        votes[event.page].append(event.stars)
    for page, stars in votes.items():
        count, total = len(stars), sum(stars)
        known = rules.votes_known
        yield page, count, total, total / count, (total + 3 * known) / (count + known)


# --- windows ---------------------------------------------------------------------------


def windows(
    events: Sequence[Some],
    key: Callable[[Some], Any],
    window_s: int,
    late_s: int,
    slide_s: int | None = None,
) -> Iterator[tuple[datetime, datetime, Any, list[Some]]]:
    """The windows that are closed: from when to when, the key, and what is in them."""
    width, slide = window_s * 1000, (slide_s or window_s) * 1000
    found: dict[tuple[int, Any], list[Some]] = defaultdict(list)
    for event in events:
        last = event.at_ms // slide * slide
        for begin in range(last, event.at_ms - width, -slide):
            found[begin, key(event)].append(event)
    reached = max(event.at_ms for event in events) - late_s * 1000
    for (begin, who), some in found.items():
        if begin + width <= reached:
            yield moment(begin), moment(begin + width), who, some


def caller(view: View) -> str:
    return view.address if view.member is None else f"member {view.member}"


def limited(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    rule = rules.limit
    for begins, ends, who, views in windows(
        of(View, events), caller, rule.window_s, rules.late_s
    ):
        if len(views) > rule.most:
            yield begins, ends, who, len(views)


def crawlers(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    rule = rules.crawler
    for begins, ends, who, views in windows(
        of(View, events), caller, rule.window_s, rules.late_s
    ):
        pages = len({view.page for view in views})
        if pages >= rule.pages and pages / len(views) >= rule.different_per_cent / 100:
            yield begins, ends, who, len(views), pages


def spam(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    rule = rules.spam
    for begins, ends, (member, shape), mails in windows(
        of(Mail, events),
        lambda mail: (mail.member, re.sub("[0-9]+", "#", mail.text.lower())),
        rule.window_s,
        rules.late_s,
    ):
        receivers = len({mail.to for mail in mails})
        if receivers >= rule.receivers:
            yield begins, ends, member, shape, len(mails), receivers


def is_late(metric: Metric, rules: Rules) -> bool:
    return metric.sent_ms - metric.at_ms > rules.late_s * 1000


def alerts(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    rule = rules.alert
    in_time = [event for event in of(Metric, events) if not is_late(event, rules)]
    for begins, ends, (host, name), measured in windows(
        in_time, lambda item: (item.host, item.name), rule.window_s, rules.late_s, rule.slide_s
    ):
        values = [measurement.value for measurement in measured]
        mean = sum(values) / len(values)
        if len(values) >= rule.least_samples and mean >= rule.mean:
            yield begins, ends, host, name, len(values), mean, max(values)


def too_late(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
    for item in of(Metric, events):
        if is_late(item, rules):
            yield moment(item.at_ms), moment(item.sent_ms), item.host, item.name, item.value


# --- warehouse -------------------------------------------------------------------------


def stored(topic: str) -> Callable[[Sequence[Event], Rules], Iterator[Row]]:
    def answer(events: Sequence[Event], rules: Rules) -> Iterator[Row]:
        for event in events:
            if topic_of(event) == topic:
                fields = [
                    list(field) if isinstance(field, tuple) else field
                    for field in msgspec.structs.astuple(event)
                ]
                at = moment(event.at_ms)
                yield (at, *fields, at.date())

    return answer


ANSWERS: dict[str, Callable[[Sequence[Event], Rules], Iterable[Row]]] = {
    job.__name__: job
    for job in (feed, click_through, ratings, limited, crawlers, spam, alerts, too_late)
} | {
    topic: stored(topic)
    for topic in ("follows", "views", "searches", "clicks", "votes", "mails", "metrics")
}
"""Table -> what it has to hold, in any order."""


# --- what really was the case ----------------------------------------------------------


def labelled(events: Sequence[Event], what: str, until_ms: int) -> set[str]:
    """Who was a crawler, a spammer or slow, and had stopped by then."""
    return {
        label.who
        for label in of(Label, events)
        if label.what == what and label.until_ms <= until_ms
    }
