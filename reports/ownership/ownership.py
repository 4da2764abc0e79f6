"""The content of the pictures of ownership, derived from a trace alone.

A *board* is the whole picture as values: rows of partitions with their fetchers, the breaches
and gaps among them, a strip for each consumer, and the entries of the timeline. `png` draws it
as an image, `html` as a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.verdicts import counted, duration
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Trace
from watchkeeper.reports.facts.intervals import (
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
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.facts.sections import sections
from watchkeeper.reports.facts.selection import Weight, choose_rows
from watchkeeper.reports.facts.sessions import (
    paused,
    process_states,
    shared_processes,
    with_process,
    without_session,
)
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import Entry, entries
from watchkeeper.reports.figure.palette import consumer_colours, consumer_stripes
from watchkeeper.reports.ownership.inset import Part, worth_a_look
from watchkeeper.reports.ownership.wording import PARTITIONS, SECTIONS, Wording


@dataclass(frozen=True, slots=True)
class Row:
    """One partition of one group."""

    place: Place
    fetched: tuple[Span, ...]
    held: tuple[Span, ...]
    """The spans in which its fetcher was paused."""
    breaches: tuple[Breach, ...]
    gaps: tuple[Span, ...]

    @property
    def longest_gap_us(self) -> int:
        """The longest time without a fetcher."""
        return max((gap.duration_us for gap in self.gaps), default=0)

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
    processes: Mapping[str, str]
    """Consumer -> the process in which it runs with others."""
    closer: Part | None
    """The inset, if there is one."""
    summary: str
    """A summary of all partitions, in one or two sentences."""
    banner: str = ""
    """The sentence on what is not drawn; empty if everything is."""
    wording: Wording = PARTITIONS

    def label_of(self, name: str) -> str:
        """The name of a consumer, with the process that it shares."""
        return with_process(name, self.processes)


def board(trace: Trace) -> Board:
    """Derive the whole picture."""
    states = process_states(trace)
    wording = SECTIONS if trace.has(EventKind.ENTERED) else PARTITIONS
    rows = tuple(_rows(trace) if wording is PARTITIONS else _section_rows(trace))
    names = consumers(trace) if wording is PARTITIONS else _threads(trace, rows)
    processes = names if wording is PARTITIONS else [name for name in names if name in states]
    strips = {name: tuple(states.get(name, ())) for name in processes}
    return Board(
        header=trace.header,
        end_us=trace.end_us,
        rows=rows,
        strips=strips,
        entries=tuple(entries(trace)),
        colours=consumer_colours(names),
        stripes=consumer_stripes(names),
        processes=shared_processes(trace),
        closer=_closer(rows, strips.values(), trace.end_us),
        summary=summarised(rows, wording),
        wording=wording,
    )


def _closer(rows: Iterable[Row], strips: Iterable[Sequence[Span]], end_us: int) -> Part | None:
    """The inset, by the changes of rows and strips."""
    spans = [span for row in rows for span in (*row.fetched, *row.gaps)]
    spans += [span for strip in strips for span in strip]
    moments = [at for span in spans for at in (span.start_us, span.end_us) if at < end_us]
    return worth_a_look([breach.span for row in rows for breach in row.breaches], moments, end_us)


def consumers(trace: Trace) -> list[str]:
    """The members of all groups: those that started, and those that fetched."""
    names = {
        event.node
        for event in trace.of_kind(EventKind.STARTED, EventKind.FETCHING)
        if event.group
    }
    return sorted(names, key=natural)


def _threads(trace: Trace, rows: Iterable[Row]) -> list[str]:
    """The processes of a test in virtual time, and their threads that entered a section."""
    found = {event.node for event in trace.of_kind(EventKind.STARTED)}
    found.update(span.what for row in rows for span in (*row.fetched, *row.held))
    return sorted(found, key=natural)


def _section_rows(trace: Trace) -> Iterable[Row]:
    dead, still = without_session(trace), paused(trace)
    for section in sections(trace):
        dead_in = _of_threads(section.guarded, dead)
        still_in = _of_threads({span.what for span in section.spans}, still)
        running, held = divided(section.spans, still_in)
        wrong = breaches(section.spans, dead_in, still_in, most=section.most)
        if section.most == 1:
            place = Place("sections", "", section.name)
            yield Row(place, tuple(running), tuple(held), tuple(wrong), ())
            continue
        for who in sorted({span.what for span in section.spans}, key=natural):
            yield Row(
                Place(f"{section.name}, {section.most} at most", "", who),
                tuple(span for span in running if span.what == who),
                tuple(span for span in held if span.what == who),
                tuple(breach for breach in wrong if who in breach.members),
                (),
            )


def _of_threads(
    names: Iterable[str], states: Mapping[str, Sequence[Span]]
) -> dict[str, Sequence[Span]]:
    """The states of processes, for each of these threads of theirs."""
    return {name: states[own] for name in names if (own := name.split(" ")[0]) in states}


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
    for event in trace.of_kind(EventKind.ASSIGNED):
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
        for span in own[:1]:
            before = first.get(place.group)
            if before is None or span.first_seq < before.first_seq:
                first[place.group] = span
    if last is None:
        return {}
    return {
        group: span._replace(end_us=last.t_us, last_seq=last.seq) for group, span in first.items()
    }


def summarised(rows: Sequence[Row], wording: Wording = PARTITIONS) -> str:
    """A summary in one or two sentences."""
    if not any(row.fetched for row in rows):
        return wording.nothing
    breached = _breach_sentence(rows, wording)
    return f"{breached} {_gap_sentence(rows)}" if wording.has_gaps else breached


def _breach_sentence(rows: Sequence[Row], wording: Wording) -> str:
    found = [breach for row in rows for breach in row.breaches]
    # A section of more than one has a row for each thread, with the same breaches.
    split = dict.fromkeys(breach.span for breach in found if breach.is_split)
    sorts = (
        (wording.split_name, list(split)),
        (wording.zombie_name, zombie_windows(found)),
    )
    parts = [f"{name} {_times(some)}" for name, some in sorts if some]
    if all(len(breach.members) <= breach.most for breach in found):
        parts.insert(0, wording.never)
    return "; ".join(parts).capitalize() + "."


def _times(spans: Sequence[Span]) -> str:
    longest = duration(max(span.duration_us for span in spans))
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


def shortened_board(board: Board, *, most_rows: int, most_marks: int, most_strips: int) -> Board:
    """The same picture with fewer rows if there are too many, and the banner for the rest."""
    weights = [row.weight for row in board.rows]
    kept = set(choose_rows(weights, most_rows=most_rows, most_marks=most_marks))
    left_out = [row for at, row in enumerate(board.rows) if at not in kept]
    names = list(board.strips)
    lives = [Weight((len(board.strips[name]),), 1) for name in names]
    shown = choose_rows(lives, most_rows=most_strips, most_marks=most_strips)
    wording = board.wording
    banners = (
        _rows_banner(len(kept), left_out, wording),
        _strips_banner(len(shown), len(names), wording),
    )
    return replace(
        board,
        rows=tuple(row for at, row in enumerate(board.rows) if at in kept),
        strips={names[at]: board.strips[names[at]] for at in shown},
        banner=" ".join(filter(None, banners)),
    )


def _rows_banner(drawn: int, left_out: Sequence[Row], wording: Wording) -> str:
    if not left_out:
        return ""
    breached = sum(1 for row in left_out if row.breaches)
    longest = max(row.longest_gap_us for row in left_out)
    which = wording.unharmed
    text = f"{breached:,} of them with {which}" if breached else f"none with {which}"
    text += f", no gap longer than {duration(longest)}" if longest else " or a gap"
    return (
        f"{drawn:,} of {counted(drawn + len(left_out), wording.place)} are drawn: "
        f"{wording.banner}. Not drawn: {len(left_out):,}, {text}."
    )


def _strips_banner(drawn: int, total: int, wording: Wording) -> str:
    if drawn == total:
        return ""
    return (
        f"{drawn:,} of {counted(total, wording.member, wording.members)} have a strip: those "
        "whose sessions changed their state most often."
    )
