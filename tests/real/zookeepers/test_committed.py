"""What a ZooKeeper has committed, for the trace of a run: the same from both servers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from tests.support.live_zookeeper import (
    SETTINGS,
    connected,
    disconnect,
    skip_without_zookeeper,
    until,
)
from tests.support.patience import PATIENCE_S
from watchkeeper.model.actor.operations import Create
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.trace.write_events import CommittedEvent
from watchkeeper.real.zookeepers.committed import committed_by
from watchkeeper.real.zookeepers.ensemble import Ensemble
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

ROOT = "/run"


@contextmanager
def started(server: Implementation) -> Iterator[Ensemble]:
    """A server of this kind that keeps what it commits."""
    if server is Implementation.JAVA:
        skip_without_zookeeper()
    with ensemble_of(server, settings=SETTINGS, has_record=True) as ensemble:
        yield ensemble


def written_by(client: KazooClient) -> None:
    """Every kind of write, also one that fails, and one outside of the root."""
    client.ensure_path(ROOT)
    client.create(f"{ROOT}/kept", b"1")
    client.create(f"{ROOT}/mine", b"2", ephemeral=True)
    client.set(f"{ROOT}/mine", b"3")
    client.create("/elsewhere")
    with pytest.raises(NodeExistsError):
        client.create(f"{ROOT}/kept")
    parts = client.transaction()
    parts.create(f"{ROOT}/a-", sequence=True)
    parts.delete(f"{ROOT}/kept")
    parts.commit()
    failing = client.transaction()
    failing.delete(f"{ROOT}/mine")
    failing.check(f"{ROOT}/none", 0)
    failing.commit()


EXPECTED = [
    (EventKind.SESSION_OPENED, []),
    (EventKind.APPLIED, []),
    (EventKind.APPLIED, [["created", "/kept", 0, "1"]]),
    (EventKind.APPLIED, [["created", "/mine", "mine", "2"]]),
    (EventKind.APPLIED, [["changed", "/mine", "mine", "3"]]),
    (EventKind.APPLIED, []),
    (EventKind.REFUSED, []),
    (EventKind.APPLIED, [["created", "/a-0000000002", 0, ""], ["deleted", "/kept", 0]]),
    (EventKind.REFUSED, []),
    (EventKind.SESSION_CLOSED, [["deleted", "/mine", "mine"]]),
]


def plain(events: list[CommittedEvent], session: int) -> list[tuple[str, list[object]]]:
    """The events of a session, with one name for it."""
    return [
        (
            event.kind,
            [
                ["mine" if cell == session else cell for cell in change]
                for change in event.detail.get("did", ())
            ],
        )
        for event in events
        if event.session == session
    ]


@pytest.mark.parametrize("server", [*Implementation])
def test_every_write_is_known_with_its_changes(server: Implementation) -> None:
    """Below the root alone, in the order of their zxids, with times of the run."""
    begin_ns = time.monotonic_ns()
    with started(server) as ensemble:
        client = connected(ensemble.hosts)
        session = client.client_id[0]
        written_by(client)
        disconnect(client)
        ends_us = (time.monotonic_ns() - begin_ns) // 1000
        events = list(committed_by(ensemble, ROOT, begin_ns))

    assert plain(events, session) == EXPECTED
    zxids = [event.zxid for event in events]
    assert zxids == sorted(set(zxids))
    a_millisecond_us = 1_000  # clocks of servers are read in milliseconds
    assert all(-a_millisecond_us <= event.at_us <= ends_us for event in events)


@pytest.mark.parametrize("server", [*Implementation])
def test_an_expired_session_takes_its_ephemerals_along(server: Implementation) -> None:
    """It differs from one that its client has closed."""
    heard: SimpleQueue[ClientEvent] = SimpleQueue()
    with started(server) as ensemble:
        client = Client(ensemble.hosts, "", 2 * SETTINGS.tick_ms, heard.put)
        client.start()
        until(lambda: client.state == "connected")
        client.submit((Create("/mine", ephemeral=True),), 1)
        until(lambda: isinstance(heard.get(timeout=PATIENCE_S).content, Reply))
        session = client.session
        client.abandon()
        begin_ns = time.monotonic_ns()

        def ends() -> list[CommittedEvent]:
            kinds = (EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
            events = committed_by(ensemble, "", begin_ns)
            return [one for one in events if one.session == session and one.kind in kinds]

        until(ends)
        [end] = ends()

    assert end.kind == EventKind.SESSION_EXPIRED
    assert end.detail == {"did": [["deleted", "/mine", session]]}
