"""`time` and `datetime` by the clock of the world."""

from __future__ import annotations

import copyreg
import datetime as datetime_module
import functools
import time
from typing import Any

from watchkeeper.virtual.threads.current import current_scheduler, here
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.scheduler import CLOCK_READ_NS, FREE_CLOCK_READS

MONOTONIC_START_NS = 1_000 * NS
"""What a monotonic clock shows at the begin of a run."""

_real = {name: getattr(time, name) for name in dir(time) if callable(getattr(time, name))}
_sleep = time.sleep
_RealDatetime = datetime_module.datetime
_RealDate = datetime_module.date


def sleep(seconds: float, /) -> None:
    """Stop the running thread for so many seconds."""
    scheduler = current_scheduler()
    if scheduler is None or scheduler.running is None:
        _sleep(seconds)
        return
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    ends_ns = scheduler.now_ns + int(seconds * NS)
    scheduler.block("a moment", int(seconds * NS))
    while scheduler.now_ns < ends_ns and scheduler.running is not None:  # a signal came first
        scheduler.block("a moment", ends_ns - scheduler.now_ns)


def _wall_ns() -> int | None:
    scheduler = current_scheduler()
    if scheduler is None:
        return None
    scheduler.read_clock_ns()
    return scheduler.wall_ns(None if scheduler.running is None else scheduler.running.process)


def _wall(seconds: float | None) -> float | None:
    """The moment that a function of `time` converts: its argument, or the world's now."""
    if seconds is not None:
        return seconds
    wall_ns = _wall_ns()
    return None if wall_ns is None else wall_ns / NS


def _monotonic_ns(name: str) -> int:
    scheduler = current_scheduler()
    if scheduler is None:
        return int(_real[name]())
    return MONOTONIC_START_NS + scheduler.read_clock_ns()


def _monotonic(name: str) -> Any:
    def read() -> float:
        scheduler = here.scheduler
        if scheduler is None:
            return float(_real[name]())
        task = scheduler.running
        if task is None or task.clock_reads >= FREE_CLOCK_READS:
            return (MONOTONIC_START_NS + scheduler.read_clock_ns()) / NS
        # `read_clock_ns`, written out: kazoo reads this clock twice for each poll.
        task.clock_reads += 1
        scheduler.now_ns = now_ns = scheduler.now_ns + CLOCK_READ_NS
        return (MONOTONIC_START_NS + now_ns) / NS

    read.__name__ = name
    return read


def _counting_ns(name: str) -> Any:
    def read() -> int:
        return _monotonic_ns(name)

    read.__name__ = name
    return read


def time_s() -> float:
    """Seconds since 1970."""
    wall_ns = _wall_ns()
    return time_real() if wall_ns is None else wall_ns / NS


def time_ns() -> int:
    """Nanoseconds since 1970."""
    wall_ns = _wall_ns()
    return int(_real["time_ns"]()) if wall_ns is None else wall_ns


time_real = time.time


def _converting(name: str) -> Any:
    real = _real[name]

    def convert(seconds: float | None = None, /) -> Any:
        return real(_wall(seconds))

    convert.__name__ = name
    return convert


def strftime(format: str, moment: Any = None, /) -> str:
    """A moment as text; without one, the world's now."""
    if moment is None and current_scheduler() is not None:
        moment = _real["localtime"](_wall(None))
    return str(_real["strftime"](format) if moment is None else _real["strftime"](format, moment))


def asctime(moment: Any = None, /) -> str:
    """A moment as text; without one, the world's now."""
    if moment is None and current_scheduler() is not None:
        moment = _real["localtime"](_wall(None))
    return str(_real["asctime"]() if moment is None else _real["asctime"](moment))


class _OneKind(type):
    """Lets the patched class stand for the original in `isinstance` and `issubclass`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, other: type) -> bool:
        if cls.__dict__.get("_STANDS_FOR") is not None:
            return issubclass(other, cls.__mro__[1])
        return type.__subclasscheck__(cls, other)


class VirtualDatetime(_RealDatetime, metaclass=_OneKind):
    """`datetime.datetime`, with the world's now; instances are of the original class."""

    __slots__ = ()  # compiled modules look at the size of an instance
    _STANDS_FOR = _RealDatetime

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A moment, of the original class unless a subclass is constructed."""
        if cls is VirtualDatetime:
            return _RealDatetime(*args, **kwargs)
        return _RealDatetime.__new__(cls, *args, **kwargs)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        """This moment."""
        wall_ns = _wall_ns()
        kind = _RealDatetime if cls is VirtualDatetime else cls
        if wall_ns is None:
            return kind.now(tz) if kind is _RealDatetime else super().now(tz)
        return kind.fromtimestamp(wall_ns / NS, tz)

    @classmethod
    def utcnow(cls) -> Any:
        """This moment in UTC, without a time zone."""
        if _wall_ns() is None:
            return _RealDatetime.utcnow() if cls is VirtualDatetime else super().utcnow()
        return cls.now(datetime_module.timezone.utc).replace(tzinfo=None)  # noqa: UP017

    @classmethod
    def today(cls) -> Any:
        """This moment in local time."""
        return cls.now()


class VirtualDate(_RealDate, metaclass=_OneKind):
    """`datetime.date`, with the world's today."""

    __slots__ = ()
    _STANDS_FOR = _RealDate

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A day, of the original class unless a subclass is constructed."""
        if cls is VirtualDate:
            return _RealDate(*args, **kwargs)
        return _RealDate.__new__(cls, *args, **kwargs)

    @classmethod
    def today(cls) -> Any:
        """This day."""
        wall_ns = _wall_ns()
        kind = _RealDate if cls is VirtualDate else cls
        return kind.today() if wall_ns is None else kind.fromtimestamp(wall_ns / NS)


def _reduced(kind: type, value: Any) -> tuple[Any, ...]:
    return (kind, *value.__reduce_ex__(2)[1:])


def keep_picklable() -> None:
    """Let values be pickled by the names that the originals had, which stand for these now."""
    for kind, real in ((VirtualDatetime, _RealDatetime), (VirtualDate, _RealDate)):
        kind.__module__, kind.__qualname__ = "datetime", real.__qualname__
        copyreg.pickle(real, functools.partial(_reduced, kind))


REPLACEMENTS: dict[str, Any] = {
    "sleep": sleep,
    "time": time_s,
    "time_ns": time_ns,
    "strftime": strftime,
    "asctime": asctime,
    **{name: _monotonic(name) for name in ("monotonic", "perf_counter")},
    **{name: _monotonic(name) for name in ("process_time", "thread_time")},
    **{name: _counting_ns(name) for name in ("monotonic_ns", "perf_counter_ns")},
    **{name: _counting_ns(name) for name in ("process_time_ns", "thread_time_ns")},
    **{name: _converting(name) for name in ("localtime", "gmtime", "ctime")},
}
"""Names of `time` -> what stands for them."""
