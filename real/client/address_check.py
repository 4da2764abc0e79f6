"""Says within two seconds why no ZooKeeper answers at an address.

A client library retries whatever happens, so a wrong port, a mistyped name and a server without
a majority look the same for its whole timeout. Here each address gets one connection and one
frame: the request to go on with a session that does not exist. Every ZooKeeper refuses it, and
no session is opened.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic

from watchkeeper.model.wire.connect import ConnectRequest, encode_connect_request
from watchkeeper.real.access import Access
from watchkeeper.real.errors import EnvironmentProblem

WITHIN_S = 1.5
LENGTH = struct.Struct(">i")
LONGEST_ANSWER = 1_000
"""No answer to the first frame has more bytes; a text, read as a length, is far more."""
NO_SESSION = ConnectRequest(0, 0, 4_000, 1, bytes(16), False)
ALERT, HANDSHAKE = 0x15, 0x16
"""The first byte of a record of TLS."""
CLOSED = (
    "closes connections without an answer: it is no ZooKeeper, or one without a majority of its "
    "servers"
)


def check_addresses(access: Access) -> None:
    """Raise EnvironmentProblem, with the reason for each address, if none has a ZooKeeper."""
    problem = addresses_problem(access)
    if problem:
        raise EnvironmentProblem(problem)


def addresses_problem(access: Access) -> str:
    """Return why no address has a ZooKeeper that answers; empty if one has."""
    addresses = access.addresses
    context = access.tls_context()
    problems: dict[str, str] = {}
    threads = [
        Thread(target=_look, args=(address, context, problems), daemon=True)
        for address in addresses
    ]
    until_s = monotonic() + WITHIN_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until_s - monotonic(), 0.0))
    found = [
        problems.get(address, f"says nothing within {WITHIN_S:g} s") for address in addresses
    ]
    return _sentence(addresses, found) if all(found) else ""


def _sentence(addresses: Sequence[str], problems: Sequence[str]) -> str:
    reasons = "; ".join(
        f"{address} {problem}" for address, problem in zip(addresses, problems, strict=True)
    )
    return f"no ZooKeeper answers at {','.join(addresses)}: {reasons}"


def _look(address: str, context: ssl.SSLContext | None, problems: dict[str, str]) -> None:
    problems[address] = _problem_at(address, context)


def _problem_at(address: str, context: ssl.SSLContext | None) -> str:
    """Return why no ZooKeeper answers at one address; empty if it does."""
    host, _, port = address.rpartition(":")
    try:
        opened = socket.create_connection((host.strip("[]"), int(port)), timeout=WITHIN_S)
    except socket.gaierror:
        return f"is not known: no host has the name {host}"
    except ConnectionRefusedError:
        return "refuses connections: nothing listens there; is the port right?"
    except TimeoutError:
        return f"accepts no connection within {WITHIN_S:g} s: a firewall, or a host that is down"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"
    with opened:
        try:
            line = opened if context is None else context.wrap_socket(opened)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            return f"does not agree on TLS ({reason}); are the port and --tls-ca right?"
        with line, suppress(ConnectionError):
            return _problem_of(line)
    return CLOSED


def _problem_of(line: socket.socket) -> str:
    """Return why what is at the end of a connection is no ZooKeeper; empty if it is one."""
    line.settimeout(WITHIN_S)
    request = encode_connect_request(NO_SESSION)
    try:
        line.sendall(LENGTH.pack(len(request)) + request)
        answer = line.recv(LONGEST_ANSWER)
    except TimeoutError:
        return f"accepts a connection and says nothing within {WITHIN_S:g} s"
    if not answer:
        return CLOSED
    if answer[0] in (ALERT, HANDSHAKE):
        return "answers in TLS; give its certificates by --tls-ca"
    if len(answer) < LENGTH.size or LENGTH.unpack(answer[:4])[0] > LONGEST_ANSWER:
        first = answer.decode("ascii", "replace").splitlines()[0][:60]
        return f"is something else than a ZooKeeper: it says {first!r}"
    return ""
