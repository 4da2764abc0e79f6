"""What Hypothesis draws for tests of the protocol: every request, and every part of an answer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from watchkeeper.model.actor.events import Stat
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    OPEN,
    UNLIMITED_MS,
    Acl,
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import (
    Auth,
    CloseSession,
    Ping,
    Reconfig,
    Request,
    Sasl,
    SetWatches,
    WhoAmI,
    opcode_of,
)
from watchkeeper.model.zookeeper.watches import Wanted

numbers = st.integers(-(1 << 31), (1 << 31) - 1)
long_numbers = st.integers(-(1 << 63), (1 << 63) - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
bmp_texts = st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=12)
"""Texts without the characters that servers in Java do not encode as UTF-8."""
data = st.none() | st.binary(max_size=40)
watch = st.booleans()
kinds = st.sampled_from(["child", "data", "any", "persistent", "recursive"])


def lists_of_permissions(words: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Acl, ...]]:
    """The list of nearly every znode, or any other."""
    entries = st.builds(Acl, numbers, words, words)
    return st.just(OPEN) | st.lists(entries, max_size=3).map(tuple)


permissions = lists_of_permissions(texts)


def _created(ephemeral: bool, sequential: bool, lifetime_ms: int) -> st.SearchStrategy[Create]:
    return st.builds(
        Create,
        texts,
        data,
        ephemeral=st.just(ephemeral),
        sequential=st.just(sequential),
        acl=permissions,
        lifetime_ms=st.just(lifetime_ms),
    )


unlimited = st.tuples(st.booleans(), st.booleans()).flatmap(
    lambda of: _created(*of, UNLIMITED_MS)
)
with_ttl = st.tuples(st.booleans(), st.integers(1, 1 << 40)).flatmap(
    lambda of: _created(False, *of)
)
containers = st.booleans().flatmap(lambda of: _created(False, of, CONTAINER_MS))
stats = st.builds(
    Stat, *[long_numbers] * 4, *[numbers] * 3, long_numbers, *[numbers] * 2, long_numbers
)

parts = (
    unlimited
    | with_ttl
    | containers
    | st.builds(Delete, texts, numbers)
    | st.builds(SetData, texts, data, numbers)
    | st.builds(Check, texts, numbers)
)
reads = st.builds(GetData, texts, watch) | st.builds(GetChildren, texts, watch)
lists_of_paths = st.lists(texts, max_size=3).map(tuple)

BODIES: dict[Opcode, st.SearchStrategy[Any]] = {
    Opcode.CREATE: unlimited,
    Opcode.CREATE_2: unlimited,
    Opcode.CREATE_CONTAINER: containers,
    Opcode.CREATE_TTL: with_ttl,
    Opcode.DELETE: st.builds(Delete, texts, numbers),
    Opcode.DELETE_CONTAINER: st.builds(DeleteContainer, texts),
    Opcode.EXISTS: st.builds(Exists, texts, watch),
    Opcode.GET_DATA: st.builds(GetData, texts, watch),
    Opcode.SET_DATA: st.builds(SetData, texts, data, numbers),
    Opcode.GET_ACL: st.builds(GetAcl, texts),
    Opcode.SET_ACL: st.builds(SetAcl, texts, permissions, numbers),
    Opcode.GET_CHILDREN: st.builds(GetChildren, texts, watch),
    Opcode.GET_CHILDREN_2: st.builds(GetChildren, texts, watch),
    Opcode.SYNC: st.builds(Sync, texts),
    Opcode.MULTI_READ: st.builds(MultiRead, st.lists(reads, max_size=4).map(tuple)),
    Opcode.CHECK_WATCHES: st.builds(CheckWatches, texts, kind=kinds),
    Opcode.REMOVE_WATCHES: st.builds(RemoveWatches, texts, kind=kinds),
    Opcode.ADD_WATCH: st.builds(AddWatch, texts, st.booleans()),
    Opcode.GET_EPHEMERALS: st.builds(GetEphemerals, texts),
    Opcode.COUNT_DESCENDANTS: st.builds(CountDescendants, texts),
    Opcode.SET_WATCHES: st.builds(
        SetWatches, long_numbers, st.builds(Wanted, *[lists_of_paths] * 3)
    ),
    Opcode.SET_WATCHES_2: st.builds(
        SetWatches, long_numbers, st.builds(Wanted, *[lists_of_paths] * 5)
    ),
    Opcode.AUTH: st.builds(Auth, numbers, texts, data),
    Opcode.SASL: st.builds(Sasl, data),
    Opcode.RECONFIG: st.builds(Reconfig, *[st.none() | texts] * 3, long_numbers),
    Opcode.WHO_AM_I: st.just(WhoAmI()),
    Opcode.PING: st.just(Ping()),
    Opcode.CLOSE_SESSION: st.just(CloseSession()),
}
"""Every opcode that a client may send but a multi's -> its bodies."""


def _with_stat(opcode: Opcode, has_stat: bool) -> Opcode:
    return Opcode.CREATE_2 if opcode is Opcode.CREATE and has_stat else opcode


multis = st.lists(st.tuples(parts, st.booleans()), max_size=4).map(
    lambda drawn: Request(
        0,
        Opcode.MULTI,
        Multi(tuple(operation for operation, _ in drawn)),
        tuple(_with_stat(opcode_of(operation), has_stat) for operation, has_stat in drawn),
    )
)
singles = st.sampled_from(sorted(BODIES)).flatmap(
    lambda opcode: BODIES[opcode].map(lambda body: Request(0, opcode, body))
)
requests = st.tuples(singles | multis, numbers).map(
    lambda drawn: Request(drawn[1], drawn[0].opcode, drawn[0].body, drawn[0].parts)
)
"""Every request that a client may send."""
