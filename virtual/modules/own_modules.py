"""Each process has its own copy of the modules that a test names.

How it works
  Processes of a world share one interpreter, so they would share the variables of every module.
  A copy runs the code of a module in a new module object, whose `__builtins__` has an own
  `__import__`: it takes the copies of the process first, and every other module from where all
  Python does. Nothing is put into `sys.modules`, but while the code of a copy runs, since
  dataclasses, typing and others look for a class's module there.

  The same loading serves preemption: a module that is only preempted has one copy for the world.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from watchkeeper.virtual.modules.preemption import SWITCH_POINT, preempted_code, switch_point
from watchkeeper.virtual.threads.errors import VirtualTimeError

MAIN_COPY = "__mp_main__"
"""The name of a copied script, as for `multiprocessing`: it must not run as a program again."""


class OwnModules:
    """The copies that one process has, or that all processes of a world share."""

    def __init__(
        self,
        names: tuple[str, ...],
        preempted: tuple[str, ...] = (),
        *,
        outer: OwnModules | None = None,
    ) -> None:
        """Copy `names` and what is below them; those in `preempted` have switch points.

        What is not of these is taken from `outer`, if it is copied there.
        """
        self._names = names
        self._preempted = preempted
        self._outer = outer
        self._copies: dict[str, ModuleType] = {}

    def has(self, name: str) -> bool:
        """Whether a module is copied here."""
        return _is_below(name, self._names)

    def find(self, name: str) -> ModuleType | None:
        """The copy of a module, made when it is needed first; None if it is not copied."""
        if not self.has(name):
            return None if self._outer is None else self._outer.find(name)
        copy = self._copies.get(name)
        return self._load(name) if copy is None else copy

    def target_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function in the copy of its module; itself if that is not copied."""
        name = getattr(function, "__module__", None)
        path = getattr(function, "__qualname__", "")
        module = None if name is None or "<locals>" in path else self.find(name)
        if module is None:
            return function
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found), "a copy has what its module has"
        return found  # type: ignore[no-any-return]

    # --- loading -----------------------------------------------------------------------

    def _load(self, name: str) -> ModuleType:
        parent, _, last = name.rpartition(".")
        holder = self.find(parent) if parent else None
        spec = _spec_of(name)
        module = ModuleType(MAIN_COPY if name == "__main__" else name, None)
        module.__spec__ = spec
        module.__loader__ = spec.loader
        module.__file__ = spec.origin
        module.__package__ = spec.parent
        if spec.submodule_search_locations is not None:
            module.__path__ = list(spec.submodule_search_locations)
        space = vars(module)
        space["__builtins__"] = {**vars(builtins), "__import__": self._import_for(module)}
        space[SWITCH_POINT] = switch_point
        self._copies[name] = module
        try:
            with _standing_for(module.__name__, module):
                exec(_code_of(spec, _is_below(name, self._preempted)), space)
        except BaseException:
            del self._copies[name]
            raise
        if holder is not None:
            setattr(holder, last, module)
        return module

    def _import_for(self, importer: ModuleType) -> Callable[..., Any]:
        def import_(
            name: str,
            globals: Any = None,
            locals: Any = None,
            fromlist: Any = (),
            level: int = 0,
        ) -> Any:
            full = name
            if level:
                package = importer.__package__ or ""
                full = importlib.util.resolve_name("." * level + name, package)
            module = self.find(full)
            if module is None:
                found = builtins.__import__(name, globals, locals, fromlist, level)
                for each in fromlist or ():
                    below = self.find(f"{full}.{each}") if each != "*" else None
                    if below is not None:
                        return _Merged(found, {each: below})
                return found
            for each in fromlist or ():
                if each != "*" and not hasattr(module, each) and hasattr(module, "__path__"):
                    self.find(f"{full}.{each}")
            if fromlist:
                return module
            return self.find(full.partition(".")[0]) or sys.modules[full.partition(".")[0]]

        return import_


class _Merged(ModuleType):
    """A module of which some parts are copies."""

    def __init__(self, module: ModuleType, copies: dict[str, ModuleType]) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(vars(module))
        self.__dict__.update(copies)


def _is_below(name: str, names: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in names)


@lru_cache(maxsize=1024)
def _spec_of(name: str) -> ModuleSpec:
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if name == "__main__" and file:
        spec = importlib.util.spec_from_file_location(name, file)
    else:
        try:
            spec = getattr(loaded, "__spec__", None) or importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None and file:
            spec = importlib.util.spec_from_file_location(name, file)
    if spec is None:
        raise VirtualTimeError(
            f"the module {name!r} cannot be found; `modules` and `preempt` name modules as "
            "`import` does"
        )
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise VirtualTimeError(
            f"the module {name!r} is not written in Python, so it cannot be copied for each "
            "process or preempted; leave it out of `modules` and `preempt`"
        )
    return spec


def _code_of(spec: ModuleSpec, is_preempted: bool) -> CodeType:
    assert spec.origin is not None, "it has a file"
    changed_ns = Path(spec.origin).stat().st_mtime_ns
    return _compiled(spec.origin, changed_ns, is_preempted)


@lru_cache(maxsize=1024)
def _compiled(file: str, changed_ns: int, is_preempted: bool) -> CodeType:
    source = Path(file).read_text()
    if is_preempted:
        return preempted_code(source, file)
    return compile(source, file, "exec", dont_inherit=True)


@contextmanager
def _standing_for(name: str, module: ModuleType) -> Iterator[None]:
    """Let a copy stand in `sys.modules` while its code runs."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
