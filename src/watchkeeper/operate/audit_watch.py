"""The command `audit`: one audit, or with `--watch` one after the other and what changes."""

from __future__ import annotations

import json
import sys
from time import sleep
from typing import TYPE_CHECKING

from watchkeeper.api.tables import console
from watchkeeper.operate.audit import Audited, Request, look, reader
from watchkeeper.operate.audit_report import changes, report, to_json

if TYPE_CHECKING:
    from watchkeeper.real.client.snapshot import Reader


def run(request: Request, *, as_json: bool, every_s: float | None) -> int:
    """Audit, print, and leave with the verdict as the exit code."""
    before: Audited | None = None
    try:
        with reader(request) as opened:
            while True:
                done = _look_again(opened, request, is_watching=every_s is not None)
                if done is not None:
                    _say(before, done, as_json=as_json, is_watching=every_s is not None)
                    before = done
                if every_s is None:
                    assert done is not None, "only a watch goes on without an audit"
                    return done.exit_code
                sleep(every_s)
    except KeyboardInterrupt:
        if before is None:
            raise
        return before.exit_code


def _look_again(opened: Reader, request: Request, *, is_watching: bool) -> Audited | None:
    """Audit; None if the connection went while a watch goes on."""
    from watchkeeper.real.client.snapshot import CutOff

    try:
        return look(opened, request)
    except CutOff as error:
        if not is_watching:
            raise
        print(error, file=sys.stderr, flush=True)
        return None


def _say(before: Audited | None, done: Audited, *, as_json: bool, is_watching: bool) -> None:
    """Print an audit, or its changes since the last one."""
    if before is None and not as_json:
        report(done, console())
        return
    message = changes(before, done) if before is not None else [""]
    if not as_json:
        print("".join(f"{line}\n" for line in message), end="", flush=True)
    elif message:
        indent = None if is_watching else 2
        print(json.dumps(to_json(done), ensure_ascii=False, indent=indent), flush=True)
