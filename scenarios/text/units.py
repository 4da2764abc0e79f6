"""Durations, rates and sizes as scenario files write them, and as integers."""

from __future__ import annotations

import re

TIME_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
SIZE_UNITS = {"B": 1, "kB": 1_000, "KiB": 1_024, "MB": 1_000_000, "MiB": 1_048_576}
MEMORY_UNITS = {"MB": 10**6, "MiB": 1 << 20, "GB": 10**9, "GiB": 1 << 30}
LONGEST_US = 24 * TIME_UNITS["h"]
HIGHEST_RATE = 10_000_000
LARGEST_BYTES = 1 << 30

_NUMBER = r"([0-9]{1,12})(?:\.([0-9]{1,6}))?"


def _scaled(digits: str, fraction: str | None, unit: int) -> int:
    """A decimal number times a unit, by integer arithmetic."""
    value = int(digits) * unit
    if fraction:
        value += int(fraction) * unit // 10 ** len(fraction)
    return value


def parse_duration(text: object, least_us: int = 0) -> int:
    """Parse a duration such as `5s`, `1.5s` or `200ms` into microseconds;
    ValueError otherwise."""
    found = re.fullmatch(rf"{_NUMBER}(us|ms|s|m|h)", text) if isinstance(text, str) else None
    if found is None:
        if str(text).startswith("-"):
            raise ValueError("is not a duration; expected one that is not negative")
        raise ValueError(f"is not a duration; expected a number with its unit{_meant(text)}")
    value = _scaled(found[1], found[2], TIME_UNITS[found[3]])
    if value > LONGEST_US:
        raise ValueError("is longer than a day; expected at most 24h")
    if value < least_us:
        raise ValueError(f"is too short; expected at least {duration_text(least_us)}")
    return value


def _meant(text: object) -> str:
    """The duration that was probably meant, or examples."""
    found = re.fullmatch(rf"({_NUMBER}) ?([A-Za-zµ]*)", str(text))
    if found is None:
        return ", such as 5s or 200ms"
    number, unit = found[1], found[4].lower().replace("µ", "u")
    if not unit:
        return f", such as {number}s or {number}ms"
    near = next(
        (suffix for suffix in ("us", "ms", "s", "m", "h") if unit.startswith(suffix)), "s"
    )
    return f": us, ms, s, m or h, such as {number}{near}"


def parse_rate(text: object) -> int:
    """Parse a rate such as `200/s` into thousandths of a message a second;
    ValueError otherwise."""
    found = re.fullmatch(rf"{_NUMBER}/(s|m|h)", text) if isinstance(text, str) else None
    if found is None:
        such = f"{text}/s" if type(text) is int and text > 0 else "200/s or 5/m"
        raise ValueError(f"is not a rate; expected messages per s, m or h, such as {such}")
    value = _scaled(found[1], found[2], 1000) * TIME_UNITS["s"] // TIME_UNITS[found[3]]
    if not 0 < value <= HIGHEST_RATE * 1000:
        raise ValueError(f"is not a rate between 0.001/s and {HIGHEST_RATE}/s")
    return value


def parse_size(text: object) -> int:
    """Parse a size such as `100B` or `2kB` into bytes; ValueError otherwise."""
    found = re.fullmatch(rf"{_NUMBER}(B|kB|KiB|MB|MiB)", text) if isinstance(text, str) else None
    if found is None:
        such = f"{text}B" if type(text) is int and text > 0 else "100B or 2kB"
        units = ", ".join(SIZE_UNITS)
        raise ValueError(f"is not a size; expected a number with its unit ({units}): {such}")
    value = _scaled(found[1], found[2], SIZE_UNITS[found[3]])
    if not 0 < value <= LARGEST_BYTES:
        raise ValueError("is not a size between 1B and 1024MiB")
    return value


def parse_memory(text: object) -> int:
    """Parse a size of memory such as `512MiB` or `14GiB` into bytes; ValueError otherwise."""
    found = re.fullmatch(rf"{_NUMBER}(MiB|GiB|MB|GB)", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("is not a size of memory; expected MiB or GiB, such as 512MiB")
    value = _scaled(found[1], found[2], MEMORY_UNITS[found[3]])
    if not 1 << 20 <= value <= 1 << 50:
        raise ValueError("is not a size of memory between 1MiB and 1048576GiB")
    return value


def duration_text(us: int) -> str:
    """A duration as a scenario file writes it."""
    for unit in ("h", "m", "s", "ms"):
        if us and us % TIME_UNITS[unit] == 0:
            return f"{us // TIME_UNITS[unit]}{unit}"
    return f"{us}us" if us else "0s"


def rate_text(thousandths: int) -> str:
    """A rate as a scenario file writes it."""
    integer, rest = divmod(thousandths, 1000)
    return f"{integer}.{rest:03d}/s".replace(".000/s", "/s")
