"""What the pictures of ownership show, worked out from a trace and nothing else.

A *board* is the whole picture as values: rows of partitions with who fetched them, the
breaches and gaps among them, a strip for each consumer, and the entries of the timeline.
`ownership_png` draws it as an image, `ownership_html` as a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from model.asks import Partition
from model.trace import Header, Trace
from model.verdicts import counted, duration
from reports.intervals import (
    Breach,
    Place,
    breaches,
    clusters,
    divided,
    fetched,
    gaps,
    hosted,
    last_event,
    within,
    zombie_windows,
)
from reports.labels import natural
from reports.palette import consumer_colours, consumer_stripes
from reports.selection import Weight, choose_rows
from reports.sessions import paused, process_states, without_session
from reports.spans import Span
from reports.timeline import Entry, entries
from reports.zoom import Part, worth_a_look


@dataclass(frozen=True, slots=True)
class Row:
    """One partition of one group."""

    place: Place
    fetched: tuple[Span, ...]
    held: tuple[Span, ...]
    """While a member that had begun to fetch it stood still."""
    breaches: tuple[Breach, ...]
    gaps: tuple[Span, ...]

    @property
    def longest_gap_us(self) -> int:
        """How long nobody fetched it, at the worst."""
        return max((one.duration_us for one in self.gaps), default=0)

    @property
    def weight(self) -> Weight:
        """Rows with breaches come first, then those with long gaps."""
        marks = len(self.fetched) + len(self.held) + len(self.breaches) + len(self.gaps)
        return Weight((len(self.breaches), self.longest_gap_us), marks)


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the pictures of ownership show."""

    header: Header
    end_us: int
    rows: tuple[Row, ...]
    strips: Mapping[str, Sequence[Span]]
    """Consumer -> its states, in the order in which consumers are shown."""
    entries: tuple[Entry, ...]
    colours: Mapping[str, str]
    stripes: Mapping[str, int]
    closer: Part | None
    """The part of the run that is worth a closer look, if there is one."""
    summary: str
    """What there is to see, in a sentence or two; of all partitions."""
    banner: str = ""
    """What is not drawn; empty when everything is."""


def board(trace: Trace) -> Board:
    """Work out the whole picture."""
    states = process_states(trace)
    rows = tuple(_rows(trace))
    names = consumers(trace)
    strips = {name: tuple(states.get(name, ())) for name in names}
    return Board(
        header=trace.header,
        end_us=trace.end_us,
        rows=rows,
        strips=strips,
        entries=tuple(entries(trace)),
        colours=consumer_colours(names),
        stripes=consumer_stripes(names),
        closer=_closer(rows, strips.values(), trace.end_us),
        summary=summarised(rows),
    )


def _closer(rows: Iterable[Row], strips: Iterable[Sequence[Span]], end_us: int) -> Part | None:
    """The part of a run that is worth a closer look: what its changes are is known here."""
    spans = [span for row in rows for span in (*row.fetched, *row.gaps)]
    spans += [span for strip in strips for span in strip]
    moments = [at for span in spans for at in (span.start_us, span.end_us) if at < end_us]
    return worth_a_look([one.span for row in rows for one in row.breaches], moments, end_us)


def consumers(trace: Trace) -> list[str]:
    """Everybody who belongs to a group: who started in it, and who fetched for it."""
    names = {event.node for event in trace.of_kind("starts", "fetching") if event.group}
    return sorted(names, key=natural)


def _rows(trace: Trace) -> Iterable[Row]:
    dead, still = without_session(trace), paused(trace)
    spans = fetched(trace)
    hosts = hosted(trace)
    expected = _expected(trace, spans)
    home = clusters(trace)
    for place in _places(trace, spans, hosts):
        own = spans.get(place, [])
        running, held = divided(own, still)
        everywhere = hosts.get(Partition(place.topic, place.partition), [])
        served = within(everywhere, home.get(place.group, ""))
        missing = gaps(running, served, expected[place.group]) if place.group in expected else []
        wrong = breaches(own, dead, still)
        yield Row(place, tuple(running), tuple(held), tuple(wrong), tuple(missing))


def _places(
    trace: Trace, spans: Iterable[Place], hosts: Mapping[Partition, Sequence[Span]]
) -> list[Place]:
    """Every partition of every topic that a group fetched from, or computed shares of."""
    wanted = {(place.group, place.topic) for place in spans}
    for event in trace.of_kind("assigned"):
        wanted.update((event.group, topic) for topic in event.detail.get("plans", ()))
    places = set(spans)
    home = clusters(trace)
    for partition, brokers in hosts.items():
        places.update(
            Place(group, topic, partition.name)
            for group, topic in wanted
            if topic == partition.topic and within(brokers, home.get(group, ""))
        )
    return sorted(places, key=lambda place: tuple(natural(word) for word in place))


def _expected(trace: Trace, spans: Mapping[Place, Sequence[Span]]) -> dict[str, Span]:
    """From when on the partitions of each group should be fetched: since its first fetch."""
    last = last_event(trace)
    first: dict[str, Span] = {}
    for place, own in spans.items():
        for one in own[:1]:
            before = first.get(place.group)
            if before is None or one.first_seq < before.first_seq:
                first[place.group] = one
    if last is None:
        return {}
    return {
        group: one._replace(end_us=last.t_us, last_seq=last.seq) for group, one in first.items()
    }


def summarised(rows: Sequence[Row]) -> str:
    """What there is to see, in two sentences."""
    if not any(row.fetched for row in rows):
        return "Nobody fetched anything."
    return f"{_breach_sentence(rows)} {_gap_sentence(rows)}"


def _breach_sentence(rows: Sequence[Row]) -> str:
    found = [one for row in rows for one in row.breaches]
    sorts = (
        ("split ownership", [one.span for one in found if one.is_split]),
        ("zombie owner", zombie_windows(found)),
    )
    said = [f"{name} {_times(some)}" for name, some in sorts if some]
    if all(len(one.members) == 1 for one in found):
        said.insert(0, "no partition was ever fetched by two members at once")
    return "; ".join(said).capitalize() + "."


def _times(spans: Sequence[Span]) -> str:
    longest = duration(max(one.duration_us for one in spans))
    return (
        f"once, for {longest}" if len(spans) == 1 else f"{len(spans):,} times, longest {longest}"
    )


def _gap_sentence(rows: Sequence[Row]) -> str:
    worst = max(rows, key=lambda row: row.longest_gap_us, default=None)
    if worst is None or not worst.gaps:
        return "No gaps."
    number = sum(len(row.gaps) for row in rows)
    place = f"{worst.place.topic}/{worst.place.partition}"
    number_said = counted(number, "gap") + (", handovers included" if number > 1 else "")
    return f"{number_said}, the longest {duration(worst.longest_gap_us)} on {place}."


def shortened_board(whole: Board, *, most_rows: int, most_marks: int, most_strips: int) -> Board:
    """The same picture with fewer rows where there are too many, and a banner that says so."""
    weights = [row.weight for row in whole.rows]
    kept = set(choose_rows(weights, most_rows=most_rows, most_marks=most_marks))
    left_out = [row for at, row in enumerate(whole.rows) if at not in kept]
    names = list(whole.strips)
    lives = [Weight((len(whole.strips[name]),), 1) for name in names]
    shown = choose_rows(lives, most_rows=most_strips, most_marks=most_strips)
    said = (_rows_banner(len(kept), left_out), _strips_banner(len(shown), len(names)))
    return replace(
        whole,
        rows=tuple(row for at, row in enumerate(whole.rows) if at in kept),
        strips={names[at]: whole.strips[names[at]] for at in shown},
        banner=" ".join(filter(None, said)),
    )


def _rows_banner(drawn: int, left_out: Sequence[Row]) -> str:
    if not left_out:
        return ""
    breached = sum(1 for row in left_out if row.breaches)
    longest = max(row.longest_gap_us for row in left_out)
    said = f"{breached:,} of them with such owners" if breached else "none with such owners"
    said += f", no gap longer than {duration(longest)}" if longest else " or a gap"
    return (
        f"{drawn:,} of {counted(drawn + len(left_out), 'partition')} are drawn: first those with "
        "two owners or a zombie, then those with the longest gaps. "
        f"Not drawn: {len(left_out):,}, {said}."
    )


def _strips_banner(drawn: int, total: int) -> str:
    if drawn == total:
        return ""
    return (
        f"{drawn:,} of {counted(total, 'consumer')} have a strip: those whose sessions changed "
        "their state most often."
    )
