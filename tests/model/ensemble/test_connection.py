"""What a connection guarantees: order, identities, limits, and faults on purpose."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.zookeeper.ensemble_in_memory import ManualClock, MemoryClient, started
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    OPEN,
    READ,
    Acl,
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SetAcl,
    SetData,
)
from watchkeeper.model.ensemble import words
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.faults import Loss, Lost
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.wire.frames import frame
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Auth, Ping, encode_request
from watchkeeper.model.zookeeper.watches import Watches

NO_NODE, NO_AUTH, AUTH_FAILED, UNIMPLEMENTED = -101, -102, -115, -6
CREATED, DELETED, CHANGED, CHILDREN = 1, 2, 3, 4


class SlowJournal:
    """A journal whose entries become durable when the test says so."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def __call__(self, entry: Entry) -> None:
        self.entries.append(entry)


@pytest.fixture
def ensemble() -> Ensemble:
    return Ensemble(ManualClock())


# --- order -----------------------------------------------------------------------------


def test_answers_come_in_the_order_of_requests_while_writes_wait_for_the_disk() -> None:
    """A read behind a write waits for it, and a write behind that read waits too."""
    journal = SlowJournal()
    ensemble = Ensemble(ManualClock(), journal=journal)
    client = MemoryClient(ensemble.servers[0])
    assert client.connect() is None, "the session is not durable yet"
    ensemble.durable_up_to(1)
    client.frames()

    sent = [
        client.send(Opcode.CREATE, Create("/a", b"1")),
        client.send(Opcode.SET_DATA, SetData("/a", b"2")),
        client.send(Opcode.GET_DATA, GetData("/a")),
        client.send(Opcode.SET_DATA, SetData("/a", b"3")),
        client.send(Opcode.PING, Ping()),
    ]

    assert client.replies() == []
    assert len(journal.entries) == 3, "both writes before the read are under way together"
    ensemble.durable_up_to(3)
    replies = client.replies()
    assert [reply.xid for reply in replies] == sent[:3]
    assert replies[2].body.startswith(b"\0\0\0\x012"), (
        "the read sees the second write, not the third"
    )
    ensemble.durable_up_to(4)
    assert [reply.xid for reply in client.replies()] == sent[3:]


def test_nothing_is_seen_before_it_is_durable() -> None:
    """Another client reads the state of what is durable, and its watch fires then."""
    journal = SlowJournal()
    ensemble = Ensemble(ManualClock(), journal=journal)
    writer, reader = MemoryClient(ensemble.servers[0]), MemoryClient(ensemble.servers[0])
    writer.connect()
    reader.connect()
    ensemble.durable_up_to(2)
    writer.frames()
    reader.frames()

    writer.send(Opcode.CREATE, Create("/a"))
    assert reader.request(Opcode.EXISTS, Exists("/a", watch=True)).error == NO_NODE
    assert reader.events == []
    ensemble.durable_up_to(3)

    assert reader.replies() == []
    assert reader.events == [(CREATED, "/a")]


def test_a_client_hears_of_its_own_change_before_the_answer(ensemble: Ensemble) -> None:
    """The events of a write leave before its reply, on the connection that made it."""
    client = started(ensemble)
    client.request(Opcode.EXISTS, Exists("/a", watch=True))
    client.request(Opcode.GET_CHILDREN, GetChildren("/", watch=True))

    xid = client.send(Opcode.CREATE, Create("/a"))
    kinds = [int.from_bytes(payload[:4], signed=True) for payload in client.frames()]

    assert kinds == [-1, -1, xid]


def test_what_a_client_has_sent_takes_effect_after_it_is_gone(ensemble: Ensemble) -> None:
    """A request that has arrived does not depend on its connection."""
    client, other = started(ensemble), started(ensemble)
    client.send(Opcode.CREATE, Create("/a"))

    assert client.connection is not None
    client.connection.closed_by_client()

    assert other.request(Opcode.EXISTS, Exists("/a")).error == 0


def test_a_read_of_a_client_that_is_gone_leaves_no_watch() -> None:
    """It waited for a write of its connection; the write behind it takes effect."""
    journal = SlowJournal()
    ensemble = Ensemble(ManualClock(), journal=journal)
    client, other = MemoryClient(ensemble.servers[0]), MemoryClient(ensemble.servers[0])
    client.connect()
    other.connect()
    ensemble.durable_up_to(2)
    other.frames()
    client.send(Opcode.CREATE, Create("/a"))
    client.send(Opcode.EXISTS, Exists("/b", watch=True))
    client.send(Opcode.CREATE, Create("/b"))

    assert client.connection is not None
    client.connection.closed_by_client()
    ensemble.durable_up_to(3)
    ensemble.durable_up_to(4)

    assert other.request(Opcode.EXISTS, Exists("/b")).error == 0
    assert ensemble.servers[0].watches == Watches()


def test_the_parts_of_a_multi_show_the_state_at_their_point(ensemble: Ensemble) -> None:
    """The Stat of a set inside a multi does not count later parts."""
    client = started(ensemble)
    client.result(Opcode.CREATE, Create("/a", b""))

    results = client.result(
        Opcode.MULTI,
        Multi((SetData("/a", b"1"), Create("/a/b"), SetData("/a", b"2"), Check("/a", 2))),
    )

    assert [opcode for opcode, _ in results] == [5, 1, 5, 13]
    stats = [results[0][1], results[2][1]]
    assert [(stat.version, stat.num_children) for stat in stats] == [(1, 0), (2, 1)]
    assert results[1][1] == "/a/b"


def test_a_failed_multi_answers_each_part(ensemble: Ensemble) -> None:
    """The parts before the failed one have code 0, those after it are inconsistent."""
    client = started(ensemble)

    reply = client.request(Opcode.MULTI, Multi((Create("/a"), Delete("/missing"), Create("/b"))))

    assert reply.error == 0
    codes = [int.from_bytes(reply.body[at + 9 : at + 13], signed=True) for at in (0, 13, 26)]
    assert codes == [0, NO_NODE, -2]
    assert client.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE


# --- identities ------------------------------------------------------------------------


def test_identities_belong_to_a_connection(ensemble: Ensemble) -> None:
    """What one connection has authenticated, the next one of the same session has not."""
    mine = (Acl(READ, "digest", "ann:zoBfMaGWAsdhDwzc4Z2PCFhzy4I="),)
    owner = started(ensemble)
    owner.request(Opcode.CREATE, Create("/a", b"1", acl=(Acl(31, "auth", ""),)))
    assert owner.request(Opcode.AUTH, Auth(0, "digest", b"ann:secret")).error == 0
    owner.result(Opcode.CREATE, Create("/a", b"1", acl=(Acl(31, "auth", ""),)))
    assert owner.request(Opcode.GET_DATA, GetData("/a")).error == 0

    again = MemoryClient(ensemble.servers[0])
    again.connect(session=owner.session, password=owner.password)

    assert again.request(Opcode.GET_DATA, GetData("/a")).error == NO_AUTH
    again.request(Opcode.AUTH, Auth(0, "digest", b"ann:secret"))
    assert again.request(Opcode.GET_DATA, GetData("/a")).error == 0
    assert mine[0].scheme == "digest"


def test_an_unknown_scheme_is_answered_and_ends_the_connection(ensemble: Ensemble) -> None:
    """The client learns the reason before the connection closes."""
    client = started(ensemble)

    assert client.request(Opcode.AUTH, Auth(0, "pigeon", b"")).error == AUTH_FAILED
    assert client.is_closed


def test_a_list_may_name_a_network(ensemble: Ensemble) -> None:
    """A client in that network may read; another one may not."""
    inside = MemoryClient(ensemble.servers[0], host="10.1.2.3")
    outside = MemoryClient(ensemble.servers[0], host="10.2.0.1")
    inside.connect()
    outside.connect()
    inside.result(Opcode.CREATE, Create("/a", b"1", acl=(Acl(READ, "ip", "10.1.0.0/16"),)))

    assert inside.request(Opcode.GET_DATA, GetData("/a")).error == 0
    assert outside.request(Opcode.GET_DATA, GetData("/a")).error == NO_AUTH


def test_an_event_needs_the_right_to_read(ensemble: Ensemble) -> None:
    """A watcher that may no longer read is not notified."""
    client, other = started(ensemble), started(ensemble)
    client.result(Opcode.CREATE, Create("/a", b"", acl=OPEN))
    other.request(Opcode.GET_DATA, GetData("/a", watch=True))
    client.request(Opcode.SET_ACL, SetAcl("/a", (Acl(31, "ip", "10.0.0.1"),)))
    client.request(Opcode.DELETE, Delete("/a"))

    assert other.replies() == []
    assert other.events == []


# --- limits ----------------------------------------------------------------------------


def test_connections_of_one_address_are_limited() -> None:
    """One more than allowed is closed at once; another address is not concerned."""
    ensemble = Ensemble(ManualClock(), settings=EnsembleSettings(connections_per_address=2))
    server = ensemble.servers[0]
    first, second, third = (MemoryClient(server) for _ in range(3))

    assert [first.is_closed, second.is_closed, third.is_closed] == [False, False, True]
    assert MemoryClient(server, host="10.0.0.1").connect() is not None
    assert first.connection is not None
    first.connection.closed_by_client()
    assert MemoryClient(server).connect() is not None


def test_a_server_stops_reading_from_a_client_with_too_many_open_requests() -> None:
    """It reads again when the requests are answered."""
    ensemble = Ensemble(
        ManualClock(), journal=SlowJournal(), settings=EnsembleSettings(most_outstanding=10)
    )
    client = MemoryClient(ensemble.servers[0])
    client.connect()
    ensemble.durable_up_to(1)
    client.frames()

    client.send(Opcode.CREATE, Create("/a"))
    for _ in range(11):
        client.send(Opcode.PING, Ping())

    assert not client.transport.reads
    ensemble.durable_up_to(2)
    assert client.transport.reads
    assert len(client.replies()) == 12


def test_a_client_that_does_not_read_is_disconnected(ensemble: Ensemble) -> None:
    """What it leaves unread is limited."""
    client = started(ensemble)
    client.transport.unread_bytes = 65 * 1024 * 1024

    client.send(Opcode.PING, Ping())

    assert client.is_closed


def test_large_answers_are_sent_before_all_of_them_are_collected(ensemble: Ensemble) -> None:
    """A piece of many small requests for a large znode ends where the client reads nothing."""
    client = started(ensemble)
    client.result(Opcode.CREATE, Create("/a", b"x" * 500_000))
    pieces: list[int] = []

    def write(data: bytes) -> None:
        pieces.append(len(data))
        client.transport.unread_bytes += len(data)

    client.transport.write = write  # type: ignore[method-assign]
    client.send_bytes(
        b"".join(
            frame(encode_request(xid, Opcode.GET_DATA, GetData("/a"))) for xid in range(10, 410)
        )
    )

    assert client.is_closed
    assert max(pieces) < 1_000_000
    assert sum(pieces) < 70 * 1024 * 1024


def test_a_request_above_the_limit_ends_the_connection(ensemble: Ensemble) -> None:
    """As Apache's server does, without an answer."""
    client = started(ensemble)

    client.send(Opcode.CREATE, Create("/a", b"x" * 0xFFFFF))

    assert client.frames() == []
    assert client.is_closed


# --- containers and lifetimes ----------------------------------------------------------


def test_an_empty_container_goes_and_one_never_used_stays() -> None:
    """A container is deleted at the next look after its last child."""
    clock = ManualClock()
    ensemble = Ensemble(clock)
    client = started(ensemble)
    client.result(Opcode.CREATE_CONTAINER, Create("/used", lifetime_ms=CONTAINER_MS))
    client.result(Opcode.CREATE_CONTAINER, Create("/fresh", lifetime_ms=CONTAINER_MS))
    client.result(Opcode.CREATE, Create("/used/child"))
    client.request(Opcode.DELETE, Delete("/used/child"))
    other = started(ensemble)

    for _ in range(70):
        clock.advance(1000)
        other.request(Opcode.PING, Ping())

    assert other.request(Opcode.EXISTS, Exists("/used")).error == NO_NODE
    assert other.request(Opcode.EXISTS, Exists("/fresh")).error == 0


def test_a_znode_with_a_lifetime_goes_when_it_has_passed() -> None:
    """A change of its data gives it the whole time again."""
    clock = ManualClock()
    ensemble = Ensemble(clock, settings=EnsembleSettings(container_check_ms=100))
    client = started(ensemble)
    client.result(Opcode.CREATE_TTL, Create("/a", b"", lifetime_ms=500))
    clock.advance(400)
    client.request(Opcode.SET_DATA, SetData("/a", b"new"))
    clock.advance(400)

    assert client.request(Opcode.EXISTS, Exists("/a")).error == 0
    clock.advance(300)
    assert client.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE


def test_lifetimes_can_be_refused() -> None:
    """Apache's servers refuse them unless a property is set."""
    ensemble = Ensemble(ManualClock(), settings=EnsembleSettings(extended_types=False))
    client = started(ensemble)

    reply = client.request(Opcode.CREATE_TTL, Create("/a", b"", lifetime_ms=500))

    assert reply.error == UNIMPLEMENTED


# --- faults on purpose -----------------------------------------------------------------


def armed(ensemble: Ensemble, what: Lost, path: str, **options: float) -> Counter[str]:
    """Arm a loss of the next request for a path; returns the counter of its effects."""
    effects: Counter[str] = Counter()

    def count(effect: str, number: int) -> None:
        effects[effect] += number

    ensemble.faults.losses.append(
        Loss(what, lambda _, request: getattr(request.body, "path", "") == path, count, **options)
    )
    return effects


def test_a_lost_answer_belongs_to_a_request_that_took_effect(ensemble: Ensemble) -> None:
    """The connection closes in place of the answer."""
    client, other = started(ensemble), started(ensemble)
    effects = armed(ensemble, Lost.ANSWER, "/a")

    client.send(Opcode.CREATE, Create("/a"))

    assert client.frames() == []
    assert client.is_closed
    assert effects == {"replies lost": 1}
    assert other.request(Opcode.EXISTS, Exists("/a")).error == 0


def test_a_lost_request_takes_no_effect_or_a_late_one() -> None:
    """With a delay it lands after its connection is gone."""
    clock = ManualClock()
    ensemble = Ensemble(clock)
    other = started(ensemble)
    for path, options in (("/never", {}), ("/late", {"lands_after_ms": 300.0})):
        client = started(ensemble)
        armed(ensemble, Lost.REQUEST, path, **options)
        client.send(Opcode.CREATE, Create(path))
        assert client.is_closed

    assert other.request(Opcode.EXISTS, Exists("/late")).error == NO_NODE
    clock.advance(300)

    assert other.request(Opcode.EXISTS, Exists("/late")).error == 0
    assert other.request(Opcode.EXISTS, Exists("/never")).error == NO_NODE


def test_a_loss_strikes_only_what_it_is_aimed_at(ensemble: Ensemble) -> None:
    """Another path passes, and the fault stays armed."""
    client = started(ensemble)
    effects = armed(ensemble, Lost.ANSWER, "/a")

    assert client.request(Opcode.CREATE, Create("/b")).error == 0
    assert effects == {}
    assert len(ensemble.faults.losses) == 1


def test_a_slow_connection_delivers_everything_later_and_in_order() -> None:
    """The delay counts in each direction."""
    clock = ManualClock()
    ensemble = Ensemble(clock)
    client = started(ensemble)
    assert client.connection is not None
    client.connection.delay(100)

    first = client.send(Opcode.EXISTS, Exists("/"))
    clock.advance(50)
    second = client.send(Opcode.EXISTS, Exists("/"))
    clock.advance(149)
    assert [reply.xid for reply in client.replies()] == []
    clock.advance(1)
    assert [reply.xid for reply in client.replies()] == [first]
    clock.advance(50)

    assert [reply.xid for reply in client.replies()] == [second]


# --- what operators see ----------------------------------------------------------------


def test_the_word_cons_names_the_last_request_of_a_connection(ensemble: Ensemble) -> None:
    """By the name of its opcode; empty before the first answer to a request."""
    client = started(ensemble)
    assert ",lop=," in words.answer(ensemble.servers[0], b"cons")

    client.request(Opcode.GET_CHILDREN, GetChildren("/"))
    assert ",lop=GET_CHILDREN," in words.answer(ensemble.servers[0], b"cons")
