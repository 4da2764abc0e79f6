"""The audit of a live cluster: a snapshot of its registry, and the findings in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from watchkeeper.console.credentials import NONE, Credentials
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.model.audit.audit import Audit, GroupAudit, audit
from watchkeeper.model.audit.finding import SEVERITIES, Severity
from watchkeeper.model.audit.lag_window import LagSample, LagWindows
from watchkeeper.model.audit.retry_budget import RetryBudget
from watchkeeper.model.audit.what_if import BadChange, WhatIf, what_if
from watchkeeper.model.group.assignment import ASSIGNORS, Assignor, UnequalSubscriptions
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry import paths

if TYPE_CHECKING:
    from watchkeeper.real.client.snapshot import Reader

LAG_WINDOW = 10
EXIT = {Verdict.HOLDS: HOLDS, Verdict.VIOLATED: VIOLATED, Verdict.UNKNOWN: UNKNOWN}


@dataclass(frozen=True, slots=True)
class Request:
    """The target and the options of an audit."""

    hosts: str
    group: str | None = None
    without: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    assignor: Assignor = "range"
    patience: RetryBudget | None = None
    asks_brokers: bool = False
    credentials: Credentials = NONE
    fails_on: Severity = Severity.NOTICE
    """The least severity of findings that make the exit code 1."""
    lag_window: int = LAG_WINDOW
    """Over how many audits of a watch the lag is judged."""


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
    fail_on: str = Severity.NOTICE.word,
    lag_window: int | None = None,
) -> Request:
    """Return the request of the command line; raise Stop for an invalid one."""
    known = [name for name in ASSIGNORS if name == assignor]
    if not known:
        raise Stop(USAGE, f"--assignor {assignor}: expected one of {', '.join(ASSIGNORS)}")
    given = {
        "session_timeout_ms": session_timeout_ms,
        "retries": retries,
        "backoff_ms": backoff_ms,
    }
    set_by_user = {name: value for name, value in given.items() if value is not None}
    patience = RetryBudget(**set_by_user) if set_by_user else None
    severity = Severity[fail_on.upper()]
    window = LAG_WINDOW if lag_window is None else lag_window
    return Request(
        *(hosts, group, without, joining, known[0], patience, lag, credentials, severity, window)
    )


@dataclass(slots=True)
class Audited:
    """An audit, with the optional results."""

    request: Request
    audit: Audit
    what_if: dict[str, WhatIf | str]
    """Group -> the result of a change, or why it is not known."""
    lag: dict[str, dict[str, int]]
    """Group -> partition -> messages that are not read yet."""
    lag_unknown: list[str]

    @property
    def exit_code(self) -> int:
        """The verdict as an exit code; findings below the severity of the request are none."""
        verdict = self.audit.verdict
        if verdict is Verdict.VIOLATED and not self._has_severe_findings:
            has_doubts = self.audit.doubts or any(group.doubts for group in self.audit.groups)
            verdict = Verdict.UNKNOWN if has_doubts else Verdict.HOLDS
        return EXIT[verdict]

    @property
    def _has_severe_findings(self) -> bool:
        found = [*self.audit.findings, *(one for g in self.audit.groups for one in g.findings)]
        return any(SEVERITIES[finding.kind] >= self.request.fails_on for finding in found)


@contextmanager
def reader(request: Request) -> Iterator[Reader]:
    """Open a connection for reading; raise Stop if it cannot be opened."""
    access = request.credentials.access(request.hosts)
    from watchkeeper.real.client.snapshot import CutOff, Reader
    from watchkeeper.real.errors import EnvironmentProblem

    try:
        with Reader(access) as opened:
            yield opened
    except EnvironmentProblem as error:
        raise Stop(USAGE, str(error)) from None
    except CutOff as error:
        raise Stop(UNKNOWN, str(error)) from None


def look(opened: Reader, request: Request, windows: LagWindows | None = None) -> Audited:
    """Audit once; with the windows of earlier audits, judge the lag over them too."""
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
    if windows is not None:
        _judge_lag(done, lag, windows)
    return Audited(request, done, _what_ifs(done, request), lag, unknown)


def _what_ifs(done: Audit, request: Request) -> dict[str, WhatIf | str]:
    if not request.without and not request.joining:
        return {}
    groups = [group for group in done.groups if group.group.members or request.group]
    names_member = request.joining or any(
        name.startswith("consumer/") for name in request.without
    )
    if names_member and len(groups) != 1:
        raise Stop(USAGE, f"of {len(groups)} groups, --group has to say which one changes")
    return {group.name: _what_if(done, group, request) for group in groups}


def _what_if(done: Audit, group: GroupAudit, request: Request) -> WhatIf | str:
    if group.group.unclear:
        return f"not known: {group.group.unclear[0]}"
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


def _judge_lag(done: Audit, lag: dict[str, dict[str, int]], windows: LagWindows) -> None:
    """Add what the lag over several audits shows to the findings of the groups."""
    now_ms = round(time() * 1000)
    samples = {
        (group.name, str(named)): LagSample(
            now_ms,
            offset,
            done.snapshot.nodes[paths.offset(group.name, named)].stat.mtime,
            lag[group.name][str(named)],
        )
        for group in done.groups
        for named, offset in group.group.offsets.items()
        if str(named) in lag.get(group.name, {})
    }
    found = windows.add(samples)
    for group in done.groups:
        group.findings += [finding for key, finding in found.items() if key[0] == group.name]


def _lag(done: Audit) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return the lag: the log ends that brokers report, less the committed offsets."""
    from watchkeeper.real.net.log_ends import log_ends

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
