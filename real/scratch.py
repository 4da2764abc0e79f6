"""A znode of one's own on somebody's ZooKeeper, which goes when it is not needed any more."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from real.problems import EnvironmentProblem

LOOK_S = 0.1
ATTEMPTS = 5
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
            _remove(operator, f"/{name}")


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


def _remove(operator: KazooClient, path: str) -> None:
    """Remove a znode and all below it; sessions that are still alive may add to it meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            operator.retry(operator.delete, path, recursive=True)
            return
        except NoNodeError:
            return
        except KazooException as error:
            if attempt == ATTEMPTS:
                raise EnvironmentProblem(
                    f"the znode {operator.chroot}{path} could not be removed "
                    f"({type(error).__name__}); remove it with all that is below it"
                ) from None
            time.sleep(LOOK_S)
