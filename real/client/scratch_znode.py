"""A znode of one's own on somebody's ZooKeeper, which goes when it is not needed any more."""

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

from real.problems import EnvironmentProblem

LOOK_S = 0.1
ATTEMPTS = 5
REMOVED_WITHIN_S = 10.0
ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def own_znode(operator: KazooClient, prefix: str) -> Iterator[str]:
    """A znode below which everything may be written; it goes when this is over."""
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
        with undisturbed():
            _clear(operator, f"/{name}")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no Ctrl-C come in between: what is left of a measurement is being removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(one, signal.signal(one, signal.SIG_IGN)) for one in ENDING]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)


def _clear(operator: KazooClient, path: str) -> None:
    try:
        remove(operator, path)
    except (KazooException, KazooTimeoutError) as error:
        raise EnvironmentProblem(
            f"the znode {operator.chroot}{path} could not be removed "
            f"({type(error).__name__}); remove it with all that is below it"
        ) from None


def remove(client: KazooClient, path: str) -> None:
    """Remove a znode and all below it; sessions that are still alive may add to it meanwhile.

    Raises the last error of kazoo's where that is not done in time: nobody waits for ever
    for a ZooKeeper that is gone.
    """
    ends = time.monotonic() + REMOVED_WITHIN_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _remove_all(client, path, ends)
            return
        except (KazooException, KazooTimeoutError):
            if attempt == ATTEMPTS or time.monotonic() > ends:
                raise
            time.sleep(LOOK_S)


def _remove_all(client: KazooClient, path: str, ends: float) -> None:
    def answer(asked: IAsyncResult) -> Any:
        return asked.get(timeout=max(ends - time.monotonic(), 0))

    try:
        for name in answer(client.get_children_async(path)):
            _remove_all(client, f"{path}/{name}", ends)
        answer(client.delete_async(path))
    except NoNodeError:
        return
