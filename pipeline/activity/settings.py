"""The settings of the activity: how events are generated, and the rules of the jobs.

    activity:
      members: 300
      zipf: {members: 0.8, pages: 1.0}
    rules:
      limit: {most: 90}

Everything has a default. An error names the place, and what was expected.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from watchkeeper.pipeline.errors import PipelineProblem

Some = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
PerCent = Annotated[int, Meta(ge=0, le=100)]
Exponent = Annotated[float, Meta(ge=0, le=5)]


class Zipf(Struct, frozen=True, forbid_unknown_fields=True):
    """The popularity of things: the k-th has a share like k ** -exponent."""

    members: Exponent = 0.8
    """Who acts."""
    followed: Exponent = 0.9
    """Who is followed."""
    pages: Exponent = 1.0
    """The page read or rated."""
    phrases: Exponent = 1.2
    """The phrase searched for."""


class Shares(Struct, frozen=True, forbid_unknown_fields=True):
    """The actions of members, with the share of each."""

    views: Count = 60
    searches: Count = 20
    votes: Count = 10
    mails: Count = 8
    follows: Count = 2


class Crawlers(Struct, frozen=True, forbid_unknown_fields=True):
    """They read page after page, some of them slowly."""

    count: Count = 4
    pages: Some = 200
    pause_ms: Some = 400
    slow_pause_ms: Some = 2_000
    """Of every second crawler."""


class Spammers(Struct, frozen=True, forbid_unknown_fields=True):
    """Members that send one text to many, with changing numbers in it."""

    count: Count = 3
    mails: Some = 60
    pause_ms: Some = 3_000


class Hosts(Struct, frozen=True, forbid_unknown_fields=True):
    """The hosts of the site, which measure their latency."""

    count: Count = 4
    every_ms: Some = 60_000
    late_per_cent: PerCent = 10
    """Share of measurements that are sent late."""
    late_ms: Some = 240_000
    """The greatest delay."""
    lost_per_mille: Count = 5
    """Share of measurements that are sent too late to count."""
    incidents: Count = 2
    incident_ms: Some = 1_200_000
    """How long a host is slow then."""


class Activity(Struct, frozen=True, forbid_unknown_fields=True):
    """A site, its members and its troubles."""

    begins: date = date(2026, 11, 1)
    members: Some = 300
    members_an_address: Some = 3
    pages: Some = 1_000
    phrases: Some = 40
    events_an_hour: Some = 600
    follows: Count = 5
    """How many others each member follows from the start."""
    shares: Shares = field(default_factory=Shares)
    zipf: Zipf = field(default_factory=Zipf)
    crawlers: Crawlers = field(default_factory=Crawlers)
    spammers: Spammers = field(default_factory=Spammers)
    hosts: Hosts = field(default_factory=Hosts)

    @property
    def begins_ms(self) -> int:
        """The first moment, in UTC."""
        return int(datetime.combine(self.begins, time(), UTC).timestamp()) * 1000


class Limit(Struct, frozen=True, forbid_unknown_fields=True):
    """How often a caller may read pages."""

    window_s: Some = 60
    most: Some = 90


class CrawlerRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A caller that reads many pages, and hardly any of them twice, is a crawler."""

    window_s: Some = 600
    pages: Some = 60
    different_per_cent: PerCent = 90


class SpamRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A member that sends one text to so many others is a spammer."""

    window_s: Some = 600
    receivers: Some = 15


class AlertRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A host raises an alert if its mean latency over a window is too high."""

    window_s: Some = 600
    slide_s: Some = 300
    mean: Some = 400
    least_samples: Some = 3


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of the jobs."""

    late_s: Some = 300
    """How long a window waits for late events."""
    limit: Limit = field(default_factory=Limit)
    crawler: CrawlerRule = field(default_factory=CrawlerRule)
    spam: SpamRule = field(default_factory=SpamRule)
    alert: AlertRule = field(default_factory=AlertRule)
    votes_known: Count = 5
    """A rating starts as if the page had so many votes of three stars."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Both of them."""

    activity: Activity = field(default_factory=Activity)
    rules: Rules = field(default_factory=Rules)


def settings_of(settings: Any, source: str) -> Settings:
    """The settings in a file; PipelineProblem if it is invalid."""
    try:
        found = msgspec.convert({} if settings is None else settings, Settings)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        where = f", in {place.rstrip('`')}" if place else ""
        raise PipelineProblem(f"{source} is not understood{where}: {what}") from None
    _check(found, source)
    return found


def _check(found: Settings, source: str) -> None:
    """Check the settings that depend on one another."""
    site, alert = found.activity, found.rules.alert
    wrong = {
        "activity.members: expected more than there are spammers, and at least two": site.members
        < max(2, site.spammers.count + 1),
        "activity.follows: expected fewer than there are members": site.follows >= site.members,
        "activity.shares: expected one that is not 0": not any(
            msgspec.structs.astuple(site.shares)
        ),
        "rules.alert.slide_s: expected a part of window_s without a remainder": alert.window_s
        % alert.slide_s
        != 0,
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise PipelineProblem(f"{source} is not understood, in {what}")
