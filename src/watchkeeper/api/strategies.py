"""Hypothesis strategies that draw small, valid scenarios.

    from hypothesis import given
    from watchkeeper import simulate, strategies

    @given(strategies.scenarios())
    def test_whatever_happens(scenario):
        assert not simulate(scenario).violated

A fault may find no target; the verdict of such a run is unknown, which is neither.

Everything drawn shrinks towards little: one consumer, one broker, no faults. The seed of a
run is fixed, not drawn: a seed has no size that could shrink, and two things that shrink
one failure would fight over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.scenarios.text.errors import expected
from watchkeeper.scenarios.text.units import duration_text

CLUSTER = "main"
GROUP = "group"
TOPIC = "clicks"

LOAD = {"at": "0s", "produce": TOPIC, "rate": "100/s"}
"""Messages for the consumers to fetch, or no offset would ever move."""

FIRST_FAULT_S = 5
BETWEEN_FAULTS_S = 12
"""Far enough apart for a session to expire and the group to rest in between."""

FAULTS = (
    "crash",
    "crash_host",
    "pause",
    "expire",
    "disconnect",
    "partition",
    "delay",
    "leave",
    "server crash",
    "lag",
    "quorum_loss",
    "lost registration",
    "late request",
    "pause amid join",
    "lost twice",
    "abandon",
)
"""Kinds of fault that `faults` draws by default."""

LATE = ("register", "claim", "commit")
"""The requests that may take effect after their session has another connection."""
AFTER_RECONNECTION = "1s"
"""A simulated client is back within a fifth of a second, unless another fault prevents it."""
JOINING = ("read members", "claim")
"""The steps of a join at which a member may be paused."""
SHORT_PAUSE = "1s"
"""Shorter than the session timeout of `groups`."""
LONG_PAUSE = "4s"
"""Longer than it: the partitions of the member go to others, and come back afterwards."""
AFTER_EXIT_S = 5
"""A process whose program ended has ended, too, by then."""
LOST_AGAIN_S = 6
"""Both pauses are over before the next fault."""


def clusters(
    *,
    most_brokers: int = 3,
    most_partitions: int = 3,
    servers: Sequence[int] = (1, 3),
    layouts: Sequence[str] = ("0.7", "0.8"),
) -> st.SearchStrategy[dict[str, Any]]:
    """Clusters as scenario files describe them: brokers, one topic, an ensemble."""
    return st.builds(
        lambda brokers, partitions, count, layout: {
            "zookeeper": {"servers": count, "tick": "500ms"},
            "brokers": brokers,
            "layout": layout,
            "topics": {TOPIC: {"partitions_per_broker": partitions}},
        },
        st.integers(1, most_brokers),
        st.integers(1, most_partitions),
        st.sampled_from(list(servers)),
        st.sampled_from(list(layouts)),
    )


def groups(
    *, most_consumers: int = 4, most_streams: int = 2
) -> st.SearchStrategy[dict[str, Any]]:
    """Groups as scenario files describe them."""
    return st.builds(
        lambda consumers, streams: {
            "consumers": consumers,
            "streams": {TOPIC: streams},
            "config": {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 3000},
        },
        st.integers(1, most_consumers),
        st.integers(1, most_streams),
    )


def faults(
    *,
    consumers: int,
    brokers: int,
    servers: int = 3,
    most: int = 3,
    kinds: Sequence[str] = FAULTS,
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Timelines of faults, one after the other, each undone before the next.

    A member that is killed or leaves is started again, so the same can happen to it twice.
    A fault of a step ("lost registration", "late request", "pause amid join") strikes when a
    member first takes that step, which is usually at its start.
    """
    return _faults(consumers, brokers, servers, most, _known(kinds))


def _known(kinds: Sequence[str]) -> list[str]:
    """Return the kinds of fault, at least one; raise ValueError for an unknown one."""
    if isinstance(kinds, str) or not kinds:
        raise ValueError(f"kinds is {kinds!r}; expected some of: {', '.join(FAULTS)}")
    for kind in kinds:
        if kind not in FAULTS:
            raise ValueError(expected(kind, "a fault that can be drawn", FAULTS))
    return list(kinds)


@st.composite
def _faults(
    draw: st.DrawFn, consumers: int, brokers: int, servers: int, most: int, kinds: list[str]
) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    number = draw(st.integers(0, most))
    for at in range(number):
        at_s = FIRST_FAULT_S + at * BETWEEN_FAULTS_S + draw(st.integers(0, 2))
        kind = draw(st.sampled_from(kinds))
        entries.extend(draw(_fault(kind, at_s, consumers, brokers, servers)))
    return entries


@st.composite
def _fault(
    draw: st.DrawFn, kind: str, at_s: int, consumers: int, brokers: int, servers: int
) -> list[dict[str, Any]]:
    member = f"{GROUP}/{draw(st.integers(0, consumers - 1))}"
    broker = f"broker/{draw(st.integers(0, brokers - 1))}"
    server = f"zookeeper/{draw(st.integers(1, servers))}"
    back = f"{at_s + draw(st.integers(1, 5))}s"
    lasts = duration_text(draw(st.integers(1, 8)) * 500_000)
    entry: dict[str, Any] = {"at": f"{at_s}s"}
    if kind in ("crash", "crash_host", "leave"):
        target = draw(st.sampled_from([member, broker]))
        again = "start" if kind == "leave" else "restart"
        return [{**entry, kind: target}, {"at": back, again: target}]
    if kind == "server crash":
        return [{**entry, "crash": server}, {"at": back, "restart": server}]
    if kind == "lost registration":
        target = draw(st.sampled_from([member, broker]))
        return [{"on": {"node": target, "purpose": "register"}, "lose": "reply"}]
    if kind == "late request":
        step = {"node": member, "purpose": draw(st.sampled_from(LATE))}
        return [{"on": step, "lose": "request", "lands_after": AFTER_RECONNECTION}]
    if kind == "pause amid join":
        step = {"node": member, "purpose": draw(st.sampled_from(JOINING))}
        return [{"on": step, "pause": member, "for": SHORT_PAUSE}]
    if kind == "lost twice":
        again = f"{at_s + LOST_AGAIN_S}s"
        return [
            {"at": moment, "pause": member, "for": LONG_PAUSE} for moment in (f"{at_s}s", again)
        ]
    if kind == "abandon":
        again = f"{at_s + AFTER_EXIT_S}s"
        return [{**entry, kind: member, "for": lasts}, {"at": again, "restart": member}]
    if kind in ("pause", "partition"):
        return [{**entry, kind: member, "for": lasts}]
    if kind == "delay":
        return [{**entry, kind: member, "by": "50ms", "for": lasts}]
    if kind == "lag":
        return [{**entry, kind: server, "by": "300ms", "for": lasts}]
    if kind == "quorum_loss":
        return [{**entry, kind: "zookeeper", "for": lasts}]
    return [{**entry, kind: member}]


def scenarios(
    *,
    kinds: Sequence[str] = FAULTS,
    most_faults: int = 3,
    most_consumers: int = 4,
    most_brokers: int = 3,
    layouts: Sequence[str] = ("0.7", "0.8"),
    variant: str = "hardened",
) -> st.SearchStrategy[dict[str, Any]]:
    """Whole scenarios, as the fields of a file; `simulate` takes them as they are.

    Of the layouts, those are drawn on which the variant runs.
    """
    return _scenarios(
        clusters(most_brokers=most_brokers, layouts=_layouts(layouts, variant)),
        groups(most_consumers=most_consumers),
        most_faults,
        _known(kinds),
        variant,
    )


def _layouts(layouts: Sequence[str], variant: str) -> list[str]:
    """Return the layouts that a variant allows; raise ValueError if there are none."""
    if variant not in VARIANTS:
        raise ValueError(expected(variant, "a variant", VARIANTS))
    allowed = VARIANTS[variant].layouts
    found: list[str] = [layout for layout in layouts if layout in allowed]
    if not found:
        raise ValueError(f"{variant} runs on no layout but {', '.join(allowed)}, not {layouts!r}")
    return found


@st.composite
def _scenarios(
    draw: st.DrawFn,
    some_clusters: st.SearchStrategy[dict[str, Any]],
    some_groups: st.SearchStrategy[dict[str, Any]],
    most_faults: int,
    kinds: list[str],
    variant: str,
) -> dict[str, Any]:
    cluster = draw(some_clusters)
    group = draw(some_groups)
    timeline = draw(
        _faults(
            group["consumers"],
            cluster["brokers"],
            cluster["zookeeper"]["servers"],
            most_faults,
            kinds,
        )
    )
    return {
        "name": "drawn",
        "about": "a scenario that was drawn",
        "variant": variant,
        "clusters": {CLUSTER: cluster},
        "groups": {GROUP: group},
        "timeline": [LOAD, *timeline],
        "settle": "20s",
    }
