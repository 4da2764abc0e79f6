"""An audit as text, as JSON, and as what has changed since the one before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from model.audit import Audit, GroupAudit
from model.findings import Finding
from model.intended import Step, steps
from model.verdicts import counted
from model.whatif import WhatIf
from watchkeeper.auditing import Audited
from watchkeeper.printing import STYLES, plain_table, show_table

MOST_STEPS = 12
MOST_FINDINGS = 40
LAG_NOT_ASKED = "lag is not known: only watchkeeper's own brokers tell it, if asked by --lag"


def report(done: Audited, to: Console) -> None:
    """Print an audit."""
    audit = done.audit
    names = ", ".join(map(str, sorted(audit.census.brokers))) or "none"
    head = Text.assemble("audit of ", (done.request.hosts, "bold"), ": ", _styled(audit.verdict))
    to.print(head, soft_wrap=True)
    to.print(Text(as_of(audit), "dim"), soft_wrap=True)
    to.print(f"brokers {names}; {counted(len(audit.census.topics), 'topic')}", soft_wrap=True)
    _show_findings(audit.findings, to)
    for doubt in audit.doubts:
        to.print(Text.assemble(("unknown ", "yellow"), doubt), soft_wrap=True)
    _show_notes([*audit.notes, *done.lag_unknown], to)
    if not audit.groups:
        to.print("there is no group", soft_wrap=True)
    for group in audit.groups:
        to.print()
        _show_group(done, group, to)


def as_of(audit: Audit) -> str:
    """How far what was read can be trusted."""
    seen = audit.snapshot
    if seen.changed:
        return (
            f"read {seen.attempts} times up to zxid 0x{seen.zxid:x}, and {len(seen.changed)} of "
            f"{len(seen.nodes)} znodes still changed meanwhile: what is said of them need never "
            "have been true at one moment"
        )
    again = f", at the {seen.attempts}th reading" if seen.attempts > 1 else ""
    return (
        f"as of zxid 0x{seen.zxid:x}: {len(seen.nodes)} znodes, of which none but offsets "
        f"changed while they were read ({seen.took_ms} ms{again})"
    )


def _show_group(done: Audited, group: GroupAudit, to: Console) -> None:
    said = Text.assemble(("group ", "dim"), (group.name, "bold"), ": ", _styled(group.verdict))
    if group.changed_ms:
        said.append(f", its newest member or claim from {_clock(group.changed_ms)}", "dim")
    to.print(said, soft_wrap=True)
    if group.members:
        show_table(_member_table(group), to)
        show_table(_topic_table(group), to)
    for doubt in group.doubts:
        to.print(Text.assemble(("unknown ", "yellow"), doubt), soft_wrap=True)
    _show_findings(group.findings, to)
    if group.plan is not None and group.members:
        to.print(f"a rebalance by {done.audit.assignor} now {_would(group.diff)}", soft_wrap=True)
        _show_steps(group.diff, to)
    _show_lag(done, group, to)
    if group.name in done.what_if:
        _show_what_if(done.what_if[group.name], to)
    _show_notes(group.notes, to)


def _member_table(group: GroupAudit) -> Table:
    table = plain_table("member", "session", "streams", "owns", "would own")
    for one in group.members:
        streams = ", ".join(f"{topic}: {many}" for topic, many in sorted(one.streams.items()))
        planned = "unknown" if one.planned is None else str(one.planned)
        table.add_row(one.name, f"0x{one.session:x}", streams or "none", str(one.owns), planned)
    return table


def _topic_table(group: GroupAudit) -> Table:
    table = plain_table("topic", "layout", "partitions", "owned", "connections to brokers")
    for one in group.topics:
        joined = f"{one.connections} to {counted(one.brokers, 'broker')}, at least "
        joined += str(one.least_connections)
        table.add_row(one.name, one.layout, str(one.partitions), str(one.owned), joined)
    return table


def _show_findings(findings: list[Finding], to: Console) -> None:
    if not findings:
        return
    table = plain_table("finding", "what is amiss")
    table.columns[0].no_wrap = True
    for one in findings[:MOST_FINDINGS]:
        where = f"{one.path}: " if one.path and one.path not in one.said else ""
        table.add_row(Text(one.kind, "bold red"), Text(f"{where}{one.said}"))
    if len(findings) > MOST_FINDINGS:
        table.add_row("", f"and {len(findings) - MOST_FINDINGS} more; --json has them all")
    show_table(table, to)


def _show_notes(notes: list[str], to: Console) -> None:
    for note in notes:
        to.print(Text.assemble(("note    ", "dim"), note), soft_wrap=True)


def _show_what_if(what: WhatIf | str, to: Console) -> None:
    if isinstance(what, str):
        to.print(Text.assemble(("what if ", "bold"), what), soft_wrap=True)
        return
    changes = " and ".join(what.changes)
    to.print(
        Text.assemble(("what if ", "bold"), f"{changes}: a rebalance {_would(what.diff)}"),
        soft_wrap=True,
    )
    _show_steps(list(what.diff), to)
    for topic, pairs, least in what.connections:
        to.print(f"  {topic}: {pairs} connections to brokers, at least {least}", soft_wrap=True)
    for note in what.notes:
        to.print(Text.assemble(("  note  ", "dim"), note), soft_wrap=True)


def _would(diff: list[Step] | tuple[Step, ...]) -> str:
    moves = sum(one.is_move for one in diff)
    claimed = sum(one.before is None for one in diff)
    released = sum(one.after is None for one in diff)
    if not diff:
        return "would change nothing"
    rest = [f"claim {claimed} that nobody has"] if claimed else []
    rest += [f"leave {released} to nobody"] if released else []
    return ", ".join([f"would move {counted(moves, 'partition')}", *rest])


def _show_steps(diff: list[Step], to: Console) -> None:
    for one in diff[:MOST_STEPS]:
        to.print(f"  {one}", soft_wrap=True)
    if len(diff) > MOST_STEPS:
        to.print(f"  and {len(diff) - MOST_STEPS} more; --json has them all", soft_wrap=True)


def _show_lag(done: Audited, group: GroupAudit, to: Console) -> None:
    if not group.group.offsets:
        return
    if not done.request.asks_brokers:
        _show_notes([LAG_NOT_ASKED], to)
        return
    behind = done.lag.get(group.name, {})
    owners = {str(partition): name for partition, name in group.owners.items()}
    table = plain_table("partition", "owner", "offset", "lag")
    for partition, offset in sorted(group.group.offsets.items()):
        lag = behind.get(str(partition))
        owner = owners.get(str(partition), "nobody")
        table.add_row(str(partition), owner, str(offset), "unknown" if lag is None else str(lag))
    show_table(table, to)


def _styled(verdict: Any) -> tuple[str, str]:
    return verdict.value, STYLES[verdict]


def _clock(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# --- what has changed ------------------------------------------------------------------


def changes(before: Audited, after: Audited) -> list[str]:
    """What is said now and was not, and the other way."""
    old, new = _lines(before.audit), _lines(after.audit)
    said = [f"- {line}" for line in old if line not in new]
    said += [f"+ {line}" for line in new if line not in old]
    owners = {one.name: one.owners for one in before.audit.groups}
    for group in after.audit.groups:
        said += [
            f"  {group.name}: {one}" for one in steps(owners.get(group.name, {}), group.owners)
        ]
    clock = datetime.now(UTC).strftime("%H:%M:%S")
    head = f"{clock} zxid 0x{after.audit.snapshot.zxid:x}: {after.audit.verdict.value}"
    return [head, *said] if said else []


def _lines(audit: Audit) -> dict[str, None]:
    lines = [f"{one.kind}: {one.said}" for one in audit.findings]
    lines += [f"unknown: {doubt}" for doubt in audit.doubts]
    lines += [f"broker {broker} is registered" for broker in sorted(audit.census.brokers)]
    for group in audit.groups:
        lines += [f"{group.name}: member {member.name}" for member in group.members]
        lines += [f"{group.name}: {one.kind}: {one.said}" for one in group.findings]
        lines += [f"{group.name}: unknown: {doubt}" for doubt in group.doubts]
    return dict.fromkeys(lines)


# --- as JSON ---------------------------------------------------------------------------


def to_json(done: Audited) -> dict[str, Any]:
    """An audit as one JSON value."""
    audit, seen = done.audit, done.audit.snapshot
    return {
        "hosts": done.request.hosts,
        "verdict": audit.verdict.value,
        "as_of": {
            "zxid": seen.zxid,
            "znodes": len(seen.nodes),
            "readings": seen.attempts,
            "took_ms": seen.took_ms,
            "consistent": not seen.changed,
            "changed": list(seen.changed),
            "unread": dict(seen.unread),
        },
        "brokers": {str(key): one.address for key, one in sorted(audit.census.brokers.items())},
        "findings": [_finding_json(one) for one in audit.findings],
        "notes": [*audit.notes, *done.lag_unknown],
        "unknown": audit.doubts,
        "groups": [_group_json(done, group) for group in audit.groups],
    }


def _group_json(done: Audited, group: GroupAudit) -> dict[str, Any]:
    value: dict[str, Any] = {
        "group": group.name,
        "verdict": group.verdict.value,
        "changed_ms": group.changed_ms,
        "unit": group.group.unit,
        "members": [_row(one) for one in group.members],
        "topics": [_row(one) for one in group.topics],
        "findings": [_finding_json(one) for one in group.findings],
        "notes": group.notes,
        "unknown": [*group.doubts, *group.group.unclear],
        "owners": {str(key): name for key, name in sorted(group.owners.items())},
        "offsets": {str(key): value for key, value in sorted(group.group.offsets.items())},
        "lag": done.lag.get(group.name) if done.request.asks_brokers else None,
        "rebalance": None,
    }
    if group.plan is not None:
        value["rebalance"] = {
            "assignor": done.audit.assignor,
            "moves": group.moves,
            "changes": _steps_json(group.diff),
        }
    if group.name in done.what_if:
        value["what_if"] = _what_if_json(done.what_if[group.name])
    return value


def _what_if_json(what: WhatIf | str) -> dict[str, Any]:
    if isinstance(what, str):
        return {"unknown": what}
    return {
        "changes": list(what.changes),
        "moves": what.moves,
        "plan": {str(key): name for key, name in sorted(what.plan.items())},
        "diff": _steps_json(what.diff),
        "connections": {
            topic: {"now": n, "least": least} for topic, n, least in what.connections
        },
        "notes": list(what.notes),
    }


def _steps_json(diff: list[Step] | tuple[Step, ...]) -> list[dict[str, Any]]:
    return [
        {"partition": str(one.partition), "from": one.before, "to": one.after} for one in diff
    ]


def _row(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _finding_json(one: Finding) -> dict[str, str]:
    named = {"kind": one.kind, "said": one.said}
    rest = {"path": one.path, "partition": one.partition, "member": one.member}
    return named | {key: value for key, value in rest.items() if value}
