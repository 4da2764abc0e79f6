"""The names that virtual time replaces, once for each process of the operating system.

How it works
  `install` sets each name of the tables in its module. Other modules may have the original
  already (`from time import sleep`, `self.sleep = staticmethod(time.sleep)` in a class body, a
  default argument), so it then looks through the loaded modules, their classes and functions,
  and replaces the original wherever it is held by name. It does that again whenever a world
  begins and modules were loaded since.

  A lock that a module made before the installation, at its top level, is replaced too: by one
  that is virtual within a world.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import datetime
import io
import os
import queue
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any, NamedTuple

from watchkeeper.virtual.threads import chance, clock, system, thread
from watchkeeper.virtual.threads.local import Local
from watchkeeper.virtual.threads.lock import (
    Lock,
    RLock,
    enter_condition,
    leave_condition,
    make_condition,
    notify_all,
    real_lock,
    real_rlock,
)


class Patch(NamedTuple):
    """A name in a module, and what stands for it."""

    module: str
    name: str
    replacement: Any


def _refused(module: ModuleType, names: Iterable[str], what: str, advice: str) -> list[Patch]:
    return [
        Patch(
            module.__name__,
            name,
            system.refusing(f"{module.__name__}.{name}", getattr(module, name), what, advice),
        )
        for name in names
        if hasattr(module, name)
    ]


THREADS = (
    *(
        Patch(module, name, Lock)
        for module, name in (("threading", "Lock"), ("_thread", "allocate_lock"))
    ),
    *(Patch("threading", name, Lock) for name in ("_allocate_lock",)),
    *(Patch(module, "RLock", RLock) for module in ("threading", "_thread")),
    Patch("threading", "_CRLock", RLock),
    Patch("threading", "local", Local),
    Patch("_thread", "_local", Local),
    Patch("threading", "get_ident", thread.get_ident),
    Patch("_thread", "get_ident", thread.get_ident),
    Patch("threading", "get_native_id", thread.get_native_id),
    Patch("_thread", "start_new_thread", thread.start_new_thread),
    Patch("threading", "enumerate", thread.enumerate_threads),
    Patch("threading", "active_count", thread.active_count),
    Patch("threading", "main_thread", thread.main_thread),
    Patch("threading", "_newname", thread.new_name),
    Patch("queue", "SimpleQueue", queue._PySimpleQueue),  # type: ignore[attr-defined]
)
METHODS = (
    (threading.Thread, "start", thread.start),
    (threading.Thread, "join", thread.join),
    (threading.Thread, "is_alive", thread.is_alive),
    (random.Random, "seed", chance.seed),
    (threading.Condition, "__init__", make_condition),
    (threading.Condition, "__enter__", enter_condition),
    (threading.Condition, "__exit__", leave_condition),
    (threading.Condition, "notify_all", notify_all),
)
"""Class, method, replacement."""
TIME = (
    *(Patch("time", name, replacement) for name, replacement in clock.REPLACEMENTS.items()),
    Patch("datetime", "datetime", clock.VirtualDatetime),
    Patch("datetime", "date", clock.VirtualDate),
)
CHANCE = (
    *(Patch("random", name, replacement) for name, replacement in chance.REPLACEMENTS.items()),
    Patch("os", "urandom", chance.urandom),
    Patch("random", "_urandom", chance.urandom),
    Patch("uuid", "uuid1", chance.uuid1),
    Patch("uuid", "getnode", chance.getnode),
)
SYSTEM = (
    Patch("_frozen_importlib", "_find_and_load", system.find_and_load),
    Patch("os", "getpid", system.getpid),
    Patch("os", "getppid", system.getppid),
    Patch("os", "_exit", system.exit_now),
    Patch("os", "kill", system.kill),
    Patch("atexit", "register", system.register),
    Patch("atexit", "unregister", system.unregister),
    Patch("signal", "signal", system.set_handler),
    Patch("signal", "getsignal", system.handler_of),
    Patch("signal", "alarm", system.alarm),
    Patch("signal", "raise_signal", system.raise_signal),
    Patch("builtins", "open", system.open_file),
    Patch("io", "open", system.open_file),
    Patch("os", "open", system.open_descriptor),
    Patch("subprocess", "Popen", system.RefusingPopen),
    *_refused(os, ("fork", "forkpty", "posix_spawn", "posix_spawnp"), "processes", system.FORKS),
    *_refused(os, ("system", "execv", "execve"), "processes", system.FORKS),
)
PATCHES: tuple[Patch, ...] = (*THREADS, *TIME, *CHANCE, *SYSTEM)

_LOADED = (_thread, atexit, builtins, datetime, io, os, secrets, signal, subprocess, time, uuid)
"""Modules that have to be there before their names are replaced."""

_OWN = "watchkeeper.virtual."
_replaced: list[tuple[Any, Any]] = []
"""Original and replacement."""
_by_id: dict[int, Any] = {}
"""Identity of an original -> its replacement; `_replaced` keeps the originals alive."""
_put_ids: set[int] = set()
"""Identities of the replacements that are in their places."""
_seen: set[str] = set()
"""The names of modules that were looked at."""
_no_modules: dict[str, Any] = {}
"""Name -> what stands there for a module, and cannot be looked through: None, or an object."""


def install(patches: Iterable[Patch] = ()) -> None:
    """Replace the names of this module's tables and of `patches`; a second time does nothing."""
    if not _replaced:
        _put(PATCHES)
        clock.keep_picklable()
        for kind, name, replacement in METHODS:
            setattr(kind, name, replacement)
    _put([patch for patch in patches if id(patch.replacement) not in _put_ids])
    sweep()


def _put(patches: Iterable[Patch]) -> None:
    for patch in patches:
        module = sys.modules[patch.module]
        original = getattr(module, patch.name, None)
        if original is None or original is patch.replacement:
            continue
        setattr(module, patch.name, patch.replacement)
        _replaced.append((original, patch.replacement))
        _by_id.setdefault(id(original), patch.replacement)
        _put_ids.add(id(patch.replacement))
        _seen.clear()


def sweep() -> None:
    """Replace the originals that modules loaded since the last sweep hold by name."""
    loaded = sys.modules
    is_known = _seen.issuperset(loaded)
    if is_known and all(loaded.get(name) is each for name, each in _no_modules.items()):
        return  # each run of a test comes here, and few load a module
    for name, module in list(loaded.items()):
        if not isinstance(module, ModuleType):
            _no_modules[name] = module
        elif name not in _seen or name in _no_modules:
            _no_modules.pop(name, None)
            if not name.startswith(_OWN) and not _is_own_copy(name):
                _sweep_module(name, module)
        _seen.add(name)


def _is_own_copy(name: str) -> bool:
    """Modules that must keep the originals: they serve real threads, or hold the tables."""
    return name in (
        "greenlet",
        "faulthandler",
        "_thread",
        "_datetime",
        "_pydatetime",
        "_io",
        "posix",
    )


def _replacement_of(value: Any) -> Any:
    """What stands for a value; None if it stays.

    A method of a replaced class (`utcnow=datetime.utcnow` as a default argument) is an object of
    its own each time, so its class is looked up.
    """
    found = _by_id.get(id(value))
    if found is None and type(value) is BuiltinMethodType:
        kind = _by_id.get(id(value.__self__))
        if isinstance(kind, type):
            found = getattr(kind, value.__name__)
    return found


def _sweep_module(name: str, module: ModuleType) -> None:
    space = vars(module)
    for attribute, value in list(space.items()):
        found = _replacement_of(value)
        if found is not None:
            space[attribute] = found
        elif type(value) is _LOCK:
            space[attribute] = Lock()
        elif type(value) is real_rlock:
            space[attribute] = RLock()
        elif isinstance(value, type):
            if value.__module__ == name:
                _sweep_class(value)
        elif type(value) is FunctionType and value.__module__ == name:
            _sweep_function(value)


_LOCK = type(real_lock())


def _sweep_class(kind: type) -> None:
    for attribute, value in list(vars(kind).items()):
        if type(value) is staticmethod:
            found = _replacement_of(value.__func__)
            if found is not None:
                setattr(kind, attribute, staticmethod(found))
            elif type(value.__func__) is FunctionType:
                _sweep_function(value.__func__)
        elif type(value) is FunctionType:
            _sweep_function(value)
        elif type(value) is classmethod and type(value.__func__) is FunctionType:
            _sweep_function(value.__func__)
        elif (found := _replacement_of(value)) is not None:
            setattr(
                kind, attribute, staticmethod(found) if type(found) is FunctionType else found
            )


def _sweep_function(function: FunctionType) -> None:
    defaults = function.__defaults__
    if defaults:
        found = [_replacement_of(value) for value in defaults]
        if any(each is not None for each in found):
            function.__defaults__ = tuple(
                value if each is None else each
                for value, each in zip(defaults, found, strict=True)
            )
    keywords = function.__kwdefaults__
    if keywords:
        for name, value in keywords.items():
            each = _replacement_of(value)
            if each is not None:
                keywords[name] = each
