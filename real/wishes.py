"""What an application asks for, checked: each refusal is a sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from model.filters import compiled, normalise
from model.registry import Layout
from model.settings import ConsumerSettings, consumer_settings
from model.subscriptions import Subscription
from model.variants import VARIANTS, Variant

NEVER_MS = 2**31 - 1
NAME = re.compile(r"[a-zA-Z0-9._-]+")


def variant_named(name: str) -> Variant:
    """The variant of this name."""
    if name in VARIANTS:
        return VARIANTS[name]
    near = get_close_matches(name, VARIANTS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"variant is {name!r}; expected one of {', '.join(VARIANTS)}{hint}")


def layout_named(variant: Variant, name: str | None) -> Layout:
    """The layout of this name, or the variant's own."""
    for layout in variant.layouts:
        if name in (layout, None):
            return layout
    raise ValueError(
        f"layout is {name!r}; {variant.name} runs on {' or '.join(map(repr, variant.layouts))}"
    )


def settings_given(variant: Variant, config: Mapping[str, Any] | None) -> ConsumerSettings:
    """A consumer's settings.

    Where offsets are not to be committed by themselves, the timer is put off for ever. The
    commit before a release stays: all it writes is what the application said.
    """
    settings = consumer_settings(variant.release, config)
    if settings.auto_commit:
        return settings
    return replace(settings, auto_commit=True, auto_commit_interval_ms=NEVER_MS)


def subscription_given(
    group: str,
    topics: Mapping[str, int] | None,
    white_list: str | None,
    black_list: str | None,
    streams: int,
) -> Subscription:
    """What a consumer of a group wants."""
    check_name("group", group)
    given = [one for one in (topics, white_list, black_list) if one is not None]
    if len(given) != 1 or not given[0]:
        raise ValueError(
            f"a consumer of {group} needs either topics, such as {{'clicks': 1}}, or a "
            "white_list or a black_list, and only one of the three"
        )
    if topics is not None:
        for name, count in topics.items():
            check_name("a topic", name)
            check_number(f"the number of streams of {name}", count, least=1)
        return Subscription(tuple(topics.items()))
    check_number("streams", streams, least=1)
    expression = white_list or black_list or ""
    compiled(normalise(expression))
    pattern = "white_list" if white_list else "black_list"
    return Subscription((), pattern, expression, streams)  # type: ignore[arg-type]


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot stand in a path, or that Kafka would not take."""
    if not NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"{what} is {name!r}; expected letters, digits, dots, _ and - only")


def check_number(what: str, number: object, *, least: int) -> None:
    """Refuse what is not a whole number, or one too small."""
    if type(number) is not int or number < least:
        raise ValueError(f"{what} is {number!r}; expected a whole number of at least {least}")
