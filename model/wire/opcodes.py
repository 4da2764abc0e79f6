"""The numbers of ZooKeeper's requests."""

from __future__ import annotations

from enum import IntEnum


class Opcode(IntEnum):
    """What a request is; the negative ones occur in logs, and `ERROR` in results of a multi."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    COUNT_DESCENDANTS = 104
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    ERROR = -1


BY_NUMBER: dict[int, Opcode] = {int(opcode): opcode for opcode in Opcode}
"""Number -> opcode; a look-up is four times as fast as `Opcode(number)`."""

CREATES = frozenset({Opcode.CREATE, Opcode.CREATE_2, Opcode.CREATE_CONTAINER, Opcode.CREATE_TTL})
"""The opcodes that create a znode."""

WRITES = frozenset(
    {
        *CREATES,
        Opcode.DELETE,
        Opcode.SET_DATA,
        Opcode.SET_ACL,
        Opcode.MULTI,
        Opcode.RECONFIG,
        Opcode.DELETE_CONTAINER,
    }
)
"""The opcodes that may change a znode."""
