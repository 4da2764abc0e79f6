"""A temporary znode on an external ZooKeeper, removed after use."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult

from watchkeeper.real.errors import EnvironmentProblem

POLL_S = 0.1
ATTEMPTS = 5
SILENT_FOR_S = 20.0
"""How long an answer may take until the server is taken for gone."""
ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def temporary_znode(operator: KazooClient, prefix: str) -> Iterator[str]:
    """A new znode below which everything may be written; it is removed at the end.

    Raises EnvironmentProblem if it cannot be created or removed.
    """
    name = f"{prefix}-{uuid4().hex[:12]}"
    try:
        operator.create(f"/{name}")
    except NoNodeError:
        raise EnvironmentProblem(
            f"there is no znode {operator.chroot}, below which the measurement was to write; "
            "make it, or name another behind the addresses"
        ) from None
    except KazooException as error:
        raise EnvironmentProblem(
            f"no znode can be made at {operator.chroot or '/'} ({type(error).__name__}); the "
            "measurement needs the right to create one there"
        ) from None
    try:
        yield name
    finally:
        with signals_ignored():
            _clear(operator, f"/{name}")


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM meanwhile: the remains of a measurement are being removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _clear(operator: KazooClient, path: str) -> None:
    try:
        remove(operator, path)
    except (KazooException, KazooTimeoutError) as error:
        raise EnvironmentProblem(
            f"the znode {operator.chroot}{path} could not be removed "
            f"({type(error).__name__}); remove it with all that is below it"
        ) from None


def remove(client: KazooClient, path: str) -> None:
    """Remove a znode and its descendants, which live sessions may still be adding to.

    Gives up after 5 attempts, or if the ZooKeeper answers nothing for 20 s, and raises the
    last error of kazoo. A slow ZooKeeper with many znodes has the time that it needs.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _remove_all(client, path)
            return
        except KazooException:
            if attempt == ATTEMPTS:
                raise
            time.sleep(POLL_S)


def _remove_all(client: KazooClient, path: str) -> None:
    def answer(result: IAsyncResult) -> Any:
        return result.get(timeout=SILENT_FOR_S)

    try:
        for name in answer(client.get_children_async(path)):
            _remove_all(client, f"{path}/{name}")
        answer(client.delete_async(path))
    except NoNodeError:
        return
