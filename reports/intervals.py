"""Who fetched each partition and when; where two did at once; where nobody did.

All of it is told by two kinds of event: "fetching" says when a member of a group begins
and ceases to fetch a partition, "hosting" when a broker begins and ceases to serve one.

What overlaps is decided by the order of the events and not by their times, as the judges
of a run decide it: a member that begins one event before another ceases has overlapped
with it, if only for a moment that took no time. A gap has to last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from model.asks import Partition
from model.trace import Event, Trace
from reports.spans import Span, SpanMaker


class Place(NamedTuple):
    """A partition as one group sees it."""

    group: str
    topic: str
    partition: str


class Overlap(NamedTuple):
    """Two or more members of a group fetched one partition at once."""

    members: tuple[str, ...]
    zombies: tuple[str, ...]
    """Those who had no live session."""
    span: Span

    @property
    def is_split(self) -> bool:
        """Whether two members with live sessions took part: split ownership."""
        return len(self.members) - len(self.zombies) > 1


def last_event(trace: Trace) -> Event | None:
    """The event that closes whatever is still open at the end of a trace."""
    return trace[len(trace) - 1] if len(trace) else None


def fetched(trace: Trace) -> dict[Place, list[Span]]:
    """Who fetched what: for each partition of each group, a span a member and a time."""
    making: SpanMaker[tuple[Place, str]] = SpanMaker()
    for event in trace.of_kind("fetching", "starts"):
        if event.kind == "starts":
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
    """A process that starts fetches nothing, whatever its predecessor left unsaid."""
    for place, node in making.open_keys():
        if node == event.node:
            making.end((place, node), event)


def _first(span: Span) -> int:
    return span.first_seq


def hosted(trace: Trace) -> dict[Partition, list[Span]]:
    """Which brokers served each partition, and when."""
    making: SpanMaker[tuple[Partition, str]] = SpanMaker()
    for event in trace.of_kind("hosting"):
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

    Where a run has but one cluster, names are without it.
    """
    return name.rpartition(":")[0]


def clusters(trace: Trace) -> dict[str, str]:
    """The cluster of each group: that of the servers its members connect to."""
    return {
        event.group: cluster_of(str(event.detail.get("at", "")))
        for event in trace.of_kind("connected")
        if event.group
    }


def within(hosts: Iterable[Span], cluster: str) -> list[Span]:
    """Of those who serve a partition, the brokers of one cluster.

    Two clusters may have topics of the same name, and then partitions of the same name.
    """
    return [one for one in hosts if cluster_of(one.what) == cluster]


class Edge(NamedTuple):
    """The moment at which a span begins or ends."""

    seq: int
    t_us: int
    begins: bool
    who: str


def edges(spans: Iterable[Span]) -> list[Edge]:
    """The beginnings and ends of spans in the order in which they happened."""
    found = [Edge(one.first_seq, one.start_us, True, one.what) for one in spans]
    found += [Edge(one.last_seq, one.end_us, False, one.what) for one in spans]
    return sorted(found, key=lambda edge: edge.seq)


def overlaps(
    spans: Sequence[Span], dead: Mapping[str, Sequence[Span]] | None = None
) -> list[Overlap]:
    """Where two or more fetched one partition at once.

    `dead` says when members had no live session. There is a piece for each set of members
    and each state of their sessions.
    """
    fetching: dict[str, None] = {}
    zombies: dict[str, None] = {}
    changes = [(edge, fetching) for edge in edges(spans)]
    for name in sorted({span.what for span in spans}):
        own = [span._replace(what=name) for span in (dead or {}).get(name, ())]
        changes += [(edge, zombies) for edge in edges(own)]
    found: list[Overlap] = []
    crowd, since = NO_CROWD, Edge(0, 0, True, "")
    for edge, side in sorted(changes, key=lambda change: change[0].seq):
        _move(side, edge)
        after = _crowd(fetching, zombies)
        if after != crowd:
            if crowd != NO_CROWD and edge.seq > since.seq:
                piece = Span("", since.t_us, edge.t_us, since.seq, edge.seq)
                found.append(Overlap(*crowd, piece))
            crowd, since = after, edge
    return found


Crowd = tuple[tuple[str, ...], tuple[str, ...]]
NO_CROWD: Crowd = ((), ())


def _move(side: dict[str, None], edge: Edge) -> None:
    if edge.begins:
        side[edge.who] = None
    else:
        side.pop(edge.who, None)


def _crowd(fetching: Mapping[str, None], zombies: Mapping[str, None]) -> Crowd:
    """Who fetches at once, and who of them has no live session; nobody if it is one at most."""
    if len(fetching) < 2:
        return NO_CROWD
    members = tuple(sorted(fetching))
    return members, tuple(member for member in members if member in zombies)


def gaps(spans: Sequence[Span], hosts: Sequence[Span], since: Span) -> list[Span]:
    """Where, within `since`, a partition was served and nobody fetched it."""
    tagged = [one._replace(what="fetched") for one in spans]
    tagged += [one._replace(what="served") for one in hosts]
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
