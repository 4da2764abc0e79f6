"""Who fetched each partition and when; splits, zombies and gaps.

Two kinds of event show it: "fetching" marks when a member of a group starts and stops
fetching a partition, "hosting" when a broker starts and stops serving one.

Three faults are possible: two members fetch one partition at once (split ownership), one
fetches whose session is dead (a zombie owner), or no member does (a gap). A paused process
fetches nothing, whatever it has started.

Overlaps are decided by the order of events and not by their times, as the judges of a run
decide them: a member that starts one event before another stops has overlapped with it, even
if for no time at all. A gap has a duration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.spans import Span, SpanMaker


class Place(NamedTuple):
    """A partition as one group reads it."""

    group: str
    topic: str
    partition: str


class Breach(NamedTuple):
    """Several members of a group fetched one partition, or one did without a live session."""

    members: tuple[str, ...]
    zombies: tuple[str, ...]
    """The members without a live session."""
    span: Span
    most: int = 1
    """How many may have the place at once."""

    @property
    def is_split(self) -> bool:
        """Whether more members with live sessions took part than may: split ownership."""
        return len(self.members) - len(self.zombies) > self.most


def last_event(trace: Trace) -> Event | None:
    """The event that closes whatever is still open at the end of a trace."""
    return trace[len(trace) - 1] if len(trace) else None


def fetched(trace: Trace) -> dict[Place, list[Span]]:
    """Partition of a group -> a span for each member and time."""
    making: SpanMaker[tuple[Place, str]] = SpanMaker()
    for event in trace.of_kind(EventKind.FETCHING, EventKind.STARTED):
        if event.kind == EventKind.STARTED:
            _close_leftovers(making, event)
            continue
        key = (Place(event.group, event.topic, event.partition), event.node)
        if event.detail.get("does") == "begins":
            making.begin(key, event.node, event)
        else:
            making.end(key, event)
    by_place: dict[Place, list[Span]] = {}
    for (place, _), spans in making.end_all(last_event(trace)).items():
        by_place.setdefault(place, []).extend(spans)
    return {place: sorted(spans, key=_first) for place, spans in by_place.items()}


def _close_leftovers(making: SpanMaker[tuple[Place, str]], event: Event) -> None:
    """Close the spans of a process that starts: it fetches nothing yet."""
    for place, node in making.open_keys():
        if node == event.node:
            making.end((place, node), event)


def _first(span: Span) -> int:
    return span.first_seq


def hosted(trace: Trace) -> dict[Partition, list[Span]]:
    """Which brokers served each partition, and when."""
    making: SpanMaker[tuple[Partition, str]] = SpanMaker()
    for event in trace.of_kind(EventKind.HOSTING):
        key = (Partition(event.topic, event.partition), event.node)
        if event.detail.get("does") == "begins":
            making.begin(key, event.node, event)
        else:
            making.end(key, event)
    by_partition: dict[Partition, list[Span]] = {}
    for (partition, _), spans in making.end_all(last_event(trace)).items():
        by_partition.setdefault(partition, []).extend(spans)
    return by_partition


def cluster_of(name: str) -> str:
    """The cluster in the name of a broker or a server: `two` of `two:broker/0`.

    In a run with one cluster, names have no cluster.
    """
    return name.rpartition(":")[0]


def clusters(trace: Trace) -> dict[str, str]:
    """The cluster of each group: that of the servers its members connect to."""
    return {
        event.group: cluster_of(str(event.detail.get("at", "")))
        for event in trace.of_kind(EventKind.CONNECTED)
        if event.group
    }


def within(hosts: Iterable[Span], cluster: str) -> list[Span]:
    """The spans of the brokers of one cluster.

    Two clusters may have topics of one name, and then partitions of one name.
    """
    return [host for host in hosts if cluster_of(host.what) == cluster]


class Edge(NamedTuple):
    """The moment at which a span starts or ends."""

    seq: int
    t_us: int
    begins: bool
    who: str


def edges(spans: Iterable[Span]) -> list[Edge]:
    """The beginnings and ends of spans in the order in which they happened."""
    found = [Edge(span.first_seq, span.start_us, True, span.what) for span in spans]
    found += [Edge(span.last_seq, span.end_us, False, span.what) for span in spans]
    return sorted(found, key=lambda edge: edge.seq)


def breaches(
    spans: Sequence[Span],
    dead: Mapping[str, Sequence[Span]] | None = None,
    still: Mapping[str, Sequence[Span]] | None = None,
    *,
    most: int = 1,
) -> list[Breach]:
    """The spans in which several members fetched one partition, or one whose session was dead.

    Several: more than `most`. `dead` holds the spans without a live session, `still` the pauses.
    A paused member fetches nothing; while its session lives, it keeps its partition. There is one
    breach for each set of members and each state of their sessions.
    """
    names = sorted({span.what for span in spans})
    sides: tuple[Side, Side, Side] = ({}, {}, {})
    changes = [(edge, sides[0]) for edge in edges(spans)]
    for side, states in ((sides[1], dead or {}), (sides[2], still or {})):
        for name in names:
            own = [span._replace(what=name) for span in states.get(name, ())]
            changes += [(edge, side) for edge in edges(own)]
    found: list[Breach] = []
    crowd, since = NO_CROWD, Edge(0, 0, True, "")
    for edge, side in sorted(changes, key=lambda change: change[0].seq):
        _move(side, edge)
        after = _crowd(*sides, most=most)
        if after != crowd:
            if crowd != NO_CROWD and edge.seq > since.seq:
                part = Span("", since.t_us, edge.t_us, since.seq, edge.seq)
                found.append(Breach(*crowd, part, most))
            crowd, since = after, edge
    return found


Side = dict[str, None]
Crowd = tuple[tuple[str, ...], tuple[str, ...]]
NO_CROWD: Crowd = ((), ())


def _move(side: dict[str, None], edge: Edge) -> None:
    if edge.begins:
        side[edge.who] = None
    else:
        side.pop(edge.who, None)


def _crowd(
    fetching: Mapping[str, None],
    dead: Mapping[str, None],
    still: Mapping[str, None],
    *,
    most: int,
) -> Crowd:
    """The fetchers, and those without a live session; empty if there is no breach."""
    members = tuple(
        sorted(member for member in fetching if member not in dead or member not in still)
    )
    zombies = tuple(member for member in members if member in dead)
    return (members, zombies) if zombies or len(members) > most else NO_CROWD


def zombie_windows(found: Iterable[Breach]) -> list[Span]:
    """The spans in which members fetched with a dead session, whatever they fetched."""
    pieces = [window.span._replace(what=name) for window in found for name in window.zombies]
    windows: dict[str, list[Span]] = {}
    for part in sorted(pieces, key=_first):
        own = windows.setdefault(part.what, [])
        if own and part.first_seq <= own[-1].last_seq:
            latest = max(own[-1], part, key=lambda span: span.last_seq)
            own[-1] = own[-1]._replace(end_us=latest.end_us, last_seq=latest.last_seq)
        else:
            own.append(part)
    return [window for own in windows.values() for window in own]


def divided(
    spans: Iterable[Span], still: Mapping[str, Sequence[Span]]
) -> tuple[list[Span], list[Span]]:
    """The spans of members, split into running and paused."""
    running: list[Span] = []
    resting: list[Span] = []
    for span in spans:
        rest = span
        for pause in still.get(span.what, ()):
            if pause.last_seq <= rest.first_seq or rest.last_seq <= pause.first_seq:
                continue
            if rest.first_seq < pause.first_seq:
                before = rest._replace(end_us=pause.start_us, last_seq=pause.first_seq)
                running.append(before)
                rest = rest._replace(start_us=pause.start_us, first_seq=pause.first_seq)
            ends = min(rest, pause, key=lambda span: span.last_seq)
            resting.append(rest._replace(end_us=ends.end_us, last_seq=ends.last_seq))
            rest = rest._replace(start_us=ends.end_us, first_seq=ends.last_seq)
        if rest.first_seq < rest.last_seq or rest == span:
            running.append(rest)
    return running, resting


def gaps(spans: Sequence[Span], hosts: Sequence[Span], since: Span) -> list[Span]:
    """The parts of `since` in which a partition was served and not fetched."""
    tagged = [span._replace(what="fetched") for span in spans]
    tagged += [host._replace(what="served") for host in hosts]
    tagged.append(since._replace(what="expected"))
    counts = {"fetched": 0, "served": 0, "expected": 0}
    opened: Edge | None = None
    found: list[Span] = []
    for edge in edges(tagged):
        counts[edge.who] += 1 if edge.begins else -1
        is_gap = counts["expected"] > 0 and counts["served"] > 0 and counts["fetched"] == 0
        if is_gap and opened is None:
            opened = edge
        elif not is_gap and opened is not None:
            if edge.t_us > opened.t_us:
                found.append(Span("", opened.t_us, edge.t_us, opened.seq, edge.seq))
            opened = None
    return found
