"""What an application asks for, checked: each refusal is a sentence that says what to do."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from model.broker import Broker
from model.filters import compiled, normalise
from model.member import Consumer
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


def consumer_given(
    group: str,
    wanted: Subscription,
    variant: str,
    layout: str | None,
    config: Mapping[str, Any] | None,
    consumer_id: str,
    host: str | None,
) -> Consumer:
    """Who a consumer is, as its program is told."""
    if consumer_id:
        check_name("consumer_id", consumer_id)
    chosen = variant_named(variant)
    return Consumer(
        node=f"{group}/{consumer_id or 'consumer'}",
        group=group,
        host=host or socket.gethostname(),
        subscription=wanted,
        layout=layout_named(chosen, layout),
        variant=chosen,
        settings=settings_given(chosen, config),
        configured_id=consumer_id,
    )


def broker_given(
    number: int,
    address: tuple[str | None, int],
    topics: Mapping[str, int],
    variant: str,
    layout: str | None,
    session_timeout_ms: int,
) -> Broker:
    """Who a broker is, as its program is told."""
    chosen = variant_named(variant)
    place = layout_named(chosen, layout)
    check_number("id", number, least=0)
    for name, count in topics.items():
        check_name("a topic", name)
        check_number(f"the number of partitions of {name}", count, least=1)
    if place == "0.8" and topics:
        raise ValueError(
            "in the 0.8 layout a topic belongs to the cluster and not to a broker; leave "
            "`topics` out and create the topic as its administrator"
        )
    host, port = address
    return Broker(
        node=f"broker/{number}",
        broker_id=number,
        host=host or socket.gethostname(),
        port=port,
        layout=place,
        variant=chosen,
        topics=tuple(topics.items()),
        session_timeout_ms=session_timeout_ms,
    )


def connector_given(
    group: str,
    variant: str,
    config: Mapping[str, Any] | None,
    consumer_id: str,
    host: str | None,
) -> Consumer:
    """Who a consumer of messages is; what it wants is said when its streams are made.

    It commits what Kafka commits: without automatic commits nothing but what it is told to.
    """
    check_name("group", group)
    me = consumer_given(group, Subscription(), variant, "0.7", config, consumer_id, host)
    return replace(me, settings=consumer_settings(me.variant.release, config))


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
