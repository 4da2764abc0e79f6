"""An audit as text, as JSON, and as changes since the last one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from watchkeeper.api.tables import plain_table, show_table, verdict_text
from watchkeeper.model.audit.audit import Audit, GroupAudit
from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.audit.finding import SEVERITIES, Finding, Severity
from watchkeeper.model.audit.target_assignment import Step, steps
from watchkeeper.model.audit.what_if import WhatIf
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.operate.audit.audit import Audited

MOST_STEPS = 12
MOST_FINDINGS = 40
STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan"}
LAG_NOT_ASKED = "lag is not known: no znode has it; --lag requests it from the brokers"


def report(done: Audited, to: Console) -> None:
    """Print an audit."""
    audit = done.audit
    names = ", ".join(map(str, sorted(audit.census.brokers))) or "none"
    head = Text.assemble(
        "audit of ", (done.request.hosts, "bold"), ": ", verdict_text(audit.verdict)
    )
    to.print(head, soft_wrap=True)
    to.print(Text(as_of(audit), "dim"), soft_wrap=True)
    to.print(f"brokers {names}; {counted(len(audit.census.topics), 'topic')}", soft_wrap=True)
    if audit.control.is_present:
        to.print(controller_line(audit.control), soft_wrap=True)
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
    """Return a sentence on the consistency of the snapshot."""
    seen = audit.snapshot
    if seen.changed:
        return (
            f"read {seen.attempts} times up to zxid 0x{seen.zxid:x}, and {len(seen.changed)} of "
            f"{len(seen.nodes)} znodes still changed meanwhile: what is reported of them need "
            "never have been true at one moment"
        )
    again = f", read {seen.attempts} times" if seen.attempts > 1 else ""
    return (
        f"as of zxid 0x{seen.zxid:x}: {len(seen.nodes)} znodes, of which none but offsets "
        f"changed while they were read ({seen.took_ms} ms{again})"
    )


def controller_line(control: ControlPlane) -> str:
    """Return a sentence on the controller: its broker, its epoch, and since when."""
    node = control.snapshot.nodes.get(paths.CONTROLLER)
    epoch = "unknown" if control.epoch is None else str(control.epoch)
    if node is None:
        return f"no controller; the last epoch is {epoch}"
    broker = "unknown" if control.controller is None else str(control.controller.broker)
    return (
        f"controller {broker}, epoch {epoch}, since {clock(node.stat.ctime)}, "
        f"session 0x{node.session:x}"
    )


def controller_json(control: ControlPlane) -> dict[str, Any] | None:
    """The controller as JSON; None where no controller has ever been."""
    if not control.is_present:
        return None
    node = control.snapshot.nodes.get(paths.CONTROLLER)
    return {
        "broker": None if control.controller is None else control.controller.broker,
        "epoch": control.epoch,
        "since_ms": None if node is None else node.stat.ctime,
        "session": None if node is None else f"0x{node.session:x}",
    }


def _show_group(done: Audited, group: GroupAudit, to: Console) -> None:
    message = Text.assemble(
        ("group ", "dim"), (group.name, "bold"), ": ", verdict_text(group.verdict)
    )
    if group.changed_ms:
        message.append(f", its newest member or claim from {clock(group.changed_ms)}", "dim")
    to.print(message, soft_wrap=True)
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
    for member in group.members:
        streams = ", ".join(f"{topic}: {many}" for topic, many in sorted(member.streams.items()))
        planned = "unknown" if member.planned is None else str(member.planned)
        table.add_row(
            member.name, f"0x{member.session:x}", streams or "none", str(member.owns), planned
        )
    return table


def _topic_table(group: GroupAudit) -> Table:
    table = plain_table("topic", "layout", "partitions", "owned", "connections to brokers")
    for topic in group.topics:
        joined = f"{topic.connections} to {counted(topic.brokers, 'broker')}, at least "
        joined += str(topic.least_connections)
        table.add_row(topic.name, topic.layout, str(topic.partitions), str(topic.owned), joined)
    return table


def _show_findings(findings: list[Finding], to: Console) -> None:
    if not findings:
        return
    table = plain_table("finding", "what is amiss")
    table.columns[0].no_wrap = True
    for finding in findings[:MOST_FINDINGS]:
        where = (
            f"{finding.path}: " if finding.path and finding.path not in finding.message else ""
        )
        style = STYLES[SEVERITIES[finding.kind]]
        table.add_row(Text(finding.kind, style), Text(f"{where}{finding.message}"))
    if len(findings) > MOST_FINDINGS:
        table.add_row("", f"and {len(findings) - MOST_FINDINGS} more; --json has them all")
    show_table(table, to)


def _show_notes(notifications: list[str], to: Console) -> None:
    for notification in notifications:
        to.print(Text.assemble(("note    ", "dim"), notification), soft_wrap=True)


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
    for notification in what.notes:
        to.print(Text.assemble(("  note  ", "dim"), notification), soft_wrap=True)


def _would(diff: list[Step] | tuple[Step, ...]) -> str:
    moves = sum(step.is_move for step in diff)
    claimed = sum(step.before is None for step in diff)
    released = sum(step.after is None for step in diff)
    if not diff:
        return "would change nothing"
    rest = [f"claim {claimed} without an owner"] if claimed else []
    rest += [f"leave {released} without an owner"] if released else []
    return ", ".join([f"would move {counted(moves, 'partition')}", *rest])


def _show_steps(diff: list[Step], to: Console) -> None:
    for step in diff[:MOST_STEPS]:
        to.print(f"  {step}", soft_wrap=True)
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
        owner = owners.get(str(partition), "no member")
        table.add_row(str(partition), owner, str(offset), "unknown" if lag is None else str(lag))
    show_table(table, to)


def clock(time_ms: int) -> str:
    """Return a moment of ZooKeeper's clock as text."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# --- what has changed ------------------------------------------------------------------


def changes(before: Audited, after: Audited) -> list[str]:
    """The lines that are new, and those that are gone."""
    old, new = _lines(before.audit), _lines(after.audit)
    message = [f"- {line}" for line in old if line not in new]
    message += [f"+ {line}" for line in new if line not in old]
    owners = {group.name: group.owners for group in before.audit.groups}
    for group in after.audit.groups:
        message += [
            f"  {group.name}: {step}" for step in steps(owners.get(group.name, {}), group.owners)
        ]
    clock = datetime.now(UTC).strftime("%H:%M:%S")
    head = f"{clock} zxid 0x{after.audit.snapshot.zxid:x}: {after.audit.verdict.value}"
    return [head, *message] if message else []


def _lines(audit: Audit) -> dict[str, None]:
    lines = [f"{finding.kind}: {finding.message}" for finding in audit.findings]
    lines += [f"unknown: {doubt}" for doubt in audit.doubts]
    lines += [f"broker {broker} is registered" for broker in sorted(audit.census.brokers)]
    lines += [controller_line(audit.control)] if audit.control.is_present else []
    for group in audit.groups:
        lines += [f"{group.name}: member {member.name}" for member in group.members]
        lines += [
            f"{group.name}: {finding.kind}: {finding.message}" for finding in group.findings
        ]
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
        "brokers": {
            str(key): broker.address for key, broker in sorted(audit.census.brokers.items())
        },
        "controller": controller_json(audit.control),
        "findings": [_finding_json(finding) for finding in audit.findings],
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
        "members": [_row(member) for member in group.members],
        "topics": [_row(topic) for topic in group.topics],
        "findings": [_finding_json(finding) for finding in group.findings],
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
        {"partition": str(step.partition), "from": step.before, "to": step.after} for step in diff
    ]


def _row(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _finding_json(finding: Finding) -> dict[str, str]:
    severity = SEVERITIES[finding.kind].word
    named = {"kind": finding.kind, "severity": severity, "message": finding.message}
    rest = {"path": finding.path, "partition": finding.partition, "member": finding.member}
    return named | {key: value for key, value in rest.items() if value}
