"""The command `audit`: one audit, or one after the other, printed or served."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from time import sleep, time
from typing import TYPE_CHECKING

from watchkeeper.api.tables import console
from watchkeeper.console.exit import HOLDS
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.audit.lag_window import LagWindows
from watchkeeper.operate.audit.audit import Audited, Request, look, reader
from watchkeeper.operate.audit.metrics import Reading, metrics_text
from watchkeeper.operate.audit.report import changes, report, to_json
from watchkeeper.operate.audit.server import LastAudit, serving

if TYPE_CHECKING:
    from watchkeeper.real.client.snapshot import Reader

SERVES_EVERY_S = 15.0
"""The interval of audits that are served, unless `--watch` says otherwise."""


@dataclass(frozen=True, slots=True)
class Output:
    """How audits are printed or served."""

    as_json: bool = False
    as_metrics: bool = False
    """In the text format of Prometheus."""
    every_s: float | None = None
    listen: str | None = None
    allows_remote: bool = False


def run(request: Request, output: Output) -> int:
    """Audit, print or serve, and leave with the verdict as the exit code."""
    if output.listen is not None:
        return _serve(request, output)
    before: Audited | None = None
    windows = _windows(request)
    try:
        with reader(request) as opened:
            while True:
                is_watching = output.every_s is not None
                done = _look_again(opened, request, windows, is_watching=is_watching)
                if done is not None:
                    _say(before, done, output)
                    before = done
                if output.every_s is None:
                    assert done is not None, "only a watch goes on without an audit"
                    return done.exit_code
                sleep(output.every_s)
    except KeyboardInterrupt:
        if before is None:
            raise
        return before.exit_code


def _windows(request: Request) -> LagWindows | None:
    """Return the windows of a watch; None where the lag is not known."""
    return LagWindows(request.lag_window) if request.asks_brokers else None


def _serve(request: Request, output: Output) -> int:
    """Audit again and again, and serve the last one, until a signal comes."""
    INTERRUPTS.raise_from_now_on()
    every_s = SERVES_EVERY_S if output.every_s is None else output.every_s
    last, windows = LastAudit(every_s), _windows(request)
    try:
        with ExitStack() as stack:
            opened = stack.enter_context(reader(request))
            last.keep(look(opened, request, windows))
            where = stack.enter_context(
                serving(output.listen or "", last, allows_remote=output.allows_remote)
            )
            print(f"audits of {request.hosts} at {where}/metrics, {where}/health", flush=True)
            while True:
                sleep(every_s)
                _keep(last, opened, request, windows)
    except KeyboardInterrupt:
        return HOLDS


def _keep(last: LastAudit, opened: Reader, request: Request, windows: LagWindows | None) -> None:
    from watchkeeper.real.client.snapshot import CutOff

    try:
        last.keep(look(opened, request, windows))
    except CutOff as error:
        last.fail(str(error))
        print(error, file=sys.stderr, flush=True)


def _look_again(
    opened: Reader, request: Request, windows: LagWindows | None, *, is_watching: bool
) -> Audited | None:
    """Audit; None if the connection went while a watch goes on."""
    from watchkeeper.real.client.snapshot import CutOff

    try:
        return look(opened, request, windows)
    except CutOff as error:
        if not is_watching:
            raise
        print(error, file=sys.stderr, flush=True)
        return None


def _say(before: Audited | None, done: Audited, output: Output) -> None:
    """Print an audit, or its changes since the last one."""
    if output.as_metrics:
        print(metrics_text(Reading(done, time()), is_up=True), end="", flush=True)
        return
    if before is None and not output.as_json:
        report(done, console())
        return
    message = changes(before, done) if before is not None else [""]
    if not output.as_json:
        print("".join(f"{line}\n" for line in message), end="", flush=True)
    elif message:
        indent = None if output.every_s is not None else 2
        print(json.dumps(to_json(done), ensure_ascii=False, indent=indent), flush=True)
