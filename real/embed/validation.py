"""Checks of the arguments of an application; each error is a sentence that says what to do."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.group.settings import (
    OF_FETCHES_08,
    ConsumerSettings,
    consumer_settings,
    setting,
)
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import VARIANTS, Variant
from watchkeeper.model.registry.paths import Layout
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.registry.topic_filter import compiled, normalise

NEVER_MS = 2**31 - 1
NAME = re.compile(r"[a-zA-Z0-9._-]+")


def variant_named(name: str) -> Variant:
    """Return the variant of this name; raise ValueError for an unknown one."""
    if name in VARIANTS:
        return VARIANTS[name]
    near = get_close_matches(name, VARIANTS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"variant is {name!r}; expected one of {', '.join(VARIANTS)}{hint}")


def layout_named(variant: Variant, name: str | None) -> Layout:
    """Return the layout of this name or the variant's own; raise ValueError for another."""
    for layout in variant.layouts:
        if name in (layout, None):
            return layout
    raise ValueError(
        f"layout is {name!r}; {variant.name} runs on {' or '.join(map(repr, variant.layouts))}"
    )


def settings_given(variant: Variant, config: Mapping[str, Any] | None) -> ConsumerSettings:
    """Return the settings of a consumer; raise ValueError for an invalid one.

    Without `auto.commit.enable` the timer of commits never fires. The commit before a release
    stays: it writes only the offsets that the application has stored.
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
    """Return the configuration of a consumer; raise ValueError for an invalid argument."""
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
    """Return the configuration of a broker; raise ValueError for an invalid argument."""
    chosen = variant_named(variant)
    place = layout_named(chosen, layout)
    check_number("id", number, least=0)
    check_topics(topics, "partitions")
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
    protocol: str,
    config: Mapping[str, Any] | None,
    consumer_id: str,
    host: str | None,
) -> Consumer:
    """Return the configuration of a connector; its streams determine the subscription.

    The registry has the layout of the version whose protocol the brokers speak.

    Without automatic commits it commits only in `commit_offsets`.
    """
    check_name("group", group)
    if protocol not in ("0.7", "0.8"):
        raise ValueError(f"protocol is {protocol!r}; expected '0.7' or '0.8'")
    me = consumer_given(group, Subscription(), variant, protocol, config, consumer_id, host)
    for key in config or {}:
        if protocol == "0.7" and setting(key).field in OF_FETCHES_08:
            raise ValueError(
                f"{key} has no effect: fetches of 0.7 are answered at once; leave it out, or "
                "choose protocol='0.8'"
            )
    return replace(me, settings=consumer_settings(me.variant.release, config))


def subscription_given(
    group: str,
    topics: Mapping[str, int] | None,
    white_list: str | None,
    black_list: str | None,
    streams: int,
) -> Subscription:
    """Return the subscription of a consumer; raise ValueError for an invalid one."""
    check_name("group", group)
    given = [pattern for pattern in (topics, white_list, black_list) if pattern is not None]
    if len(given) != 1 or not given[0]:
        raise ValueError(
            f"a consumer of {group} needs either topics, such as {{'clicks': 1}}, or a "
            "white_list or a black_list, and only one of the three"
        )
    if topics is not None:
        check_topics(topics, "streams")
        return Subscription(tuple(topics.items()))
    check_number("streams", streams, least=1)
    expression = white_list or black_list or ""
    compiled(normalise(expression))
    pattern = "white_list" if white_list else "black_list"
    return Subscription((), pattern, expression, streams)  # type: ignore[arg-type]


def check_topics(topics: Mapping[str, int], what: str) -> None:
    """Raise ValueError unless these are topics with a number each: of streams, of partitions."""
    if not isinstance(topics, Mapping):
        raise ValueError(
            f"topics is {topics!r}; expected a mapping of topics to {what}, such as "
            "{'clicks': 1}"
        )
    for name, count in topics.items():
        check_name("a topic", name)
        check_number(f"the number of {what} of {name}", count, least=1)


def check_name(what: str, name: object) -> None:
    """Raise ValueError for a name that is invalid in a path, or in Kafka."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"{what} is {name!r}; expected letters, digits, dots, _ and - only")


def check_number(what: str, number: object, *, least: int) -> None:
    """Raise ValueError for a value that is no integer, or is too small."""
    if type(number) is not int or number < least:
        raise ValueError(f"{what} is {number!r}; expected a whole number of at least {least}")
