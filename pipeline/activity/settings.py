"""What can be set: how the events of a site are generated, and by which rules they are judged.

    activity:
      members: 300
      zipf: {members: 0.8, pages: 1.0}
    rules:
      limit: {most: 90}

All of it has defaults. A mistake is told with the place, and with what was expected.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from pipeline.problems import PipelineProblem

Some = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
PerCent = Annotated[int, Meta(ge=0, le=100)]
Exponent = Annotated[float, Meta(ge=0, le=5)]


class Zipf(Struct, frozen=True, forbid_unknown_fields=True):
    """How unlike in popularity things are: the k-th has a share like k ** -exponent."""

    members: Exponent = 0.8
    """Who does something."""
    followed: Exponent = 0.9
    """Who is followed."""
    pages: Exponent = 1.0
    """What is read, and voted on."""
    phrases: Exponent = 1.2
    """What is searched for."""


class Shares(Struct, frozen=True, forbid_unknown_fields=True):
    """What members do, one share for each of the things they may do."""

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
    """Of every second one."""


class Spammers(Struct, frozen=True, forbid_unknown_fields=True):
    """Members that write the same to many, with other numbers in it."""

    count: Count = 3
    mails: Some = 60
    pause_ms: Some = 3_000


class Hosts(Struct, frozen=True, forbid_unknown_fields=True):
    """The hosts of the site, which measure the latency of their answers."""

    count: Count = 4
    every_ms: Some = 60_000
    late_per_cent: PerCent = 10
    """So many measurements in a hundred are sent late."""
    late_ms: Some = 240_000
    """By so much at most."""
    lost_per_mille: Count = 5
    """So many in a thousand are sent later than anybody waits for."""
    incidents: Count = 2
    incident_ms: Some = 1_200_000
    """How long a host is slow then."""


class Activity(Struct, frozen=True, forbid_unknown_fields=True):
    """A site, its members and what goes wrong there."""

    begins: date = date(2026, 11, 1)
    members: Some = 300
    members_an_address: Some = 3
    pages: Some = 1_000
    phrases: Some = 40
    events_an_hour: Some = 600
    follows: Count = 5
    """Whom each member follows when it begins."""
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
    """A member that writes the same to so many others spreads spam."""

    window_s: Some = 600
    receivers: Some = 15


class AlertRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A host alarms whose mean latency over a window is too high."""

    window_s: Some = 600
    slide_s: Some = 300
    mean: Some = 400
    least_samples: Some = 3


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """What the jobs go by."""

    late_s: Some = 300
    """How long is waited for what happened earlier."""
    limit: Limit = field(default_factory=Limit)
    crawler: CrawlerRule = field(default_factory=CrawlerRule)
    spam: SpamRule = field(default_factory=SpamRule)
    alert: AlertRule = field(default_factory=AlertRule)
    votes_known: Count = 5
    """A page's rating begins as if it had so many votes of three stars."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Both of them."""

    activity: Activity = field(default_factory=Activity)
    rules: Rules = field(default_factory=Rules)


def settings_of(said: Any, source: str) -> Settings:
    """What a file says; PipelineProblem where that is not understood."""
    try:
        found = msgspec.convert({} if said is None else said, Settings)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        where = f", in {place.rstrip('`')}" if place else ""
        raise PipelineProblem(f"{source} is not understood{where}: {what}") from None
    _check(found, source)
    return found


def _check(found: Settings, source: str) -> None:
    """What single values do not show."""
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
