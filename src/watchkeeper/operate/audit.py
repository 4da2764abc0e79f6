"""The audit of a live cluster: read, judge, say, and, if so wished, do it again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING, Any

from model.assignment import ASSIGNORS, Assignor, UnequalSubscriptions
from model.audit import Audit, GroupAudit, audit
from model.patience import Patience
from model.verdicts import Verdict
from model.whatif import BadChange, WhatIf, what_if
from watchkeeper.endings import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.reaching import NONE, Credentials

if TYPE_CHECKING:
    from real.snapshot import Reader

EXIT = {Verdict.HOLDS: HOLDS, Verdict.VIOLATED: VIOLATED, Verdict.UNKNOWN: UNKNOWN}


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be audited, and how."""

    hosts: str
    group: str | None = None
    without: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    assignor: Assignor = "range"
    patience: Patience | None = None
    asks_brokers: bool = False
    credentials: Credentials = NONE


def request(
    hosts: str,
    group: str | None,
    without: tuple[str, ...] = (),
    joining: tuple[str, ...] = (),
    assignor: str = "range",
    session_timeout_ms: int | None = None,
    retries: int | None = None,
    backoff_ms: int | None = None,
    lag: bool = False,
    credentials: Credentials = NONE,
) -> Request:
    """What the command line asks for; Stop says what is not understood."""
    known = [one for one in ASSIGNORS if one == assignor]
    if not known:
        raise Stop(USAGE, f"--assignor {assignor}: expected one of {', '.join(ASSIGNORS)}")
    given = {
        "session_timeout_ms": session_timeout_ms,
        "retries": retries,
        "backoff_ms": backoff_ms,
    }
    set_by_user = {name: value for name, value in given.items() if value is not None}
    patience = Patience(**set_by_user) if set_by_user else None
    return Request(hosts, group, without, joining, known[0], patience, lag, credentials)


@dataclass(slots=True)
class Audited:
    """An audit, and what else was asked for."""

    request: Request
    audit: Audit
    what_if: dict[str, WhatIf | str]
    """Group -> what a change would lead to, or why that cannot be said."""
    lag: dict[str, dict[str, int]]
    """Group -> partition -> messages that are not read yet."""
    lag_unknown: list[str]

    @property
    def exit_code(self) -> int:
        """The verdict as an exit code."""
        return EXIT[self.audit.verdict]


@contextmanager
def reader(request: Request) -> Iterator[Reader]:
    """A connection for reading; Stop says what is missing."""
    access = request.credentials.access(request.hosts)
    from real.problems import EnvironmentProblem
    from real.snapshot import CutOff, Reader

    try:
        with Reader(access) as opened:
            yield opened
    except EnvironmentProblem as error:
        raise Stop(USAGE, str(error)) from None
    except CutOff as error:
        raise Stop(UNKNOWN, str(error)) from None


def credentials(auth: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What `--auth` says, each a scheme and its credential; Stop says what is not understood."""
    found = []
    for text in auth:
        scheme, colon, credential = text.partition(":")
        if not colon or not credential:
            raise Stop(USAGE, "--auth is written scheme:credential, as in digest:user:password")
        found.append((scheme, credential))
    return tuple(found)


def look(opened: Reader, request: Request) -> Audited:
    """Audit once."""
    snapshot = opened.read(request.group)
    if not snapshot.nodes and not snapshot.unread:
        raise Stop(
            USAGE,
            f"there is no registry at {request.hosts}: neither /brokers nor /consumers is there; "
            "is a chroot missing (host:port/chroot)?",
        )
    done = audit(snapshot, assignor=request.assignor, patience=request.patience)
    if request.group is not None and not done.groups and not snapshot.doubts(request.group):
        raise Stop(USAGE, f"there is no group {request.group} at {request.hosts}")
    lag, unknown = _lag(done) if request.asks_brokers else ({}, [])
    return Audited(request, done, _what_ifs(done, request), lag, unknown)


def _what_ifs(done: Audit, request: Request) -> dict[str, WhatIf | str]:
    if not request.without and not request.joining:
        return {}
    groups = [one for one in done.groups if one.group.members or request.group]
    names_member = request.joining or any(one.startswith("consumer/") for one in request.without)
    if names_member and len(groups) != 1:
        raise Stop(USAGE, f"of {len(groups)} groups, --group has to say which one changes")
    return {one.name: _what_if(done, one, request) for one in groups}


def _what_if(done: Audit, group: GroupAudit, request: Request) -> WhatIf | str:
    if group.group.unclear:
        return f"cannot be said: {group.group.unclear[0]}"
    try:
        return what_if(
            done.census,
            group.group,
            group.owners,
            request.assignor,
            request.without,
            request.joining,
        )
    except BadChange as error:
        raise Stop(USAGE, str(error)) from None
    except UnequalSubscriptions as error:
        return f"no rebalance could succeed: {error}"


def _lag(done: Audit) -> tuple[dict[str, dict[str, int]], list[str]]:
    """What brokers say of the logs, less what is committed."""
    from real.lag import log_ends

    asked: dict[str, dict[Any, None]] = {}
    places = {}
    for group in done.groups:
        for named in group.group.offsets:
            topic = done.census.topics.get(named.topic)
            if topic is None:
                continue
            partition = topic.canonical(named)
            home = topic.broker_of(partition)
            broker = None if home is None else done.census.brokers.get(home)
            if broker is not None:
                places[named] = partition
                asked.setdefault(broker.address, {})[places[named]] = None
    ends, reasons = log_ends(asked)
    lag = {
        group.name: {
            str(named): ends[places[named]] - offset
            for named, offset in group.group.offsets.items()
            if places.get(named) in ends
        }
        for group in done.groups
    }
    return lag, reasons


# --- the command -----------------------------------------------------------------------


def run(request: Request, *, as_json: bool, every_s: float | None) -> int:
    """Audit, print, and leave with the verdict as the exit code."""
    before: Audited | None = None
    try:
        with reader(request) as opened:
            while True:
                done = _look_again(opened, request, is_watching=every_s is not None)
                if done is not None:
                    _say(before, done, as_json=as_json, is_watching=every_s is not None)
                    before = done
                if every_s is None:
                    assert done is not None, "only a watch goes on without an audit"
                    return done.exit_code
                sleep(every_s)
    except KeyboardInterrupt:
        if before is None:
            raise
        return before.exit_code


def _look_again(opened: Reader, request: Request, *, is_watching: bool) -> Audited | None:
    """Audit; None if the connection went while a watch goes on."""
    from real.snapshot import CutOff

    try:
        return look(opened, request)
    except CutOff as error:
        if not is_watching:
            raise
        print(error, file=sys.stderr, flush=True)
        return None


def _say(before: Audited | None, done: Audited, *, as_json: bool, is_watching: bool) -> None:
    """Print an audit, or what has changed since the one before."""
    from watchkeeper.audit_report import changes, report, to_json
    from watchkeeper.printing import console

    if before is None and not as_json:
        report(done, console())
        return
    said = changes(before, done) if before is not None else [""]
    if not as_json:
        print("".join(f"{line}\n" for line in said), end="", flush=True)
    elif said:
        indent = None if is_watching else 2
        print(json.dumps(to_json(done), ensure_ascii=False, indent=indent), flush=True)
