"""Runs one process and ends it when whoever asked for it is gone, however that happened.

This is a program of its own, and needs nothing but the standard library:

    python guard.py OUTPUT FOLDER COMMAND...

It starts the command with its output appended to OUTPUT, writes `pid N`, and then obeys
its standard input: each line is the name of a signal, sent to the process and answered
with `sent`. When its input ends, or its parent is another than before, it kills the
process (a stopped one as well) and, unless FOLDER is empty, removes that folder. When the
process has ended, so does the guard, with its exit code, or 128 and the signal.

It is the parent of the process, so the number it signals cannot have become another's.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time

LOOK_S = 0.5
"""How often it looks whether its parent is still there; its input ends at once otherwise."""
REMOVED_WITHIN_S, AGAIN_S = 10.0, 0.05


def main(output: str, folder: str, *command: str) -> int:
    """Run a command until it ends or the parent is gone; the exit code."""
    parent = os.getppid()
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    with open(output, "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    _say(f"pid {process.pid}")
    while process.poll() is None:
        ready, _, _ = select.select([0, ended], [], [], LOOK_S)
        asked = os.read(0, 4096) if 0 in ready else None
        if asked == b"" or os.getppid() != parent:
            return _end(process, folder)
        for name in (asked or b"").decode().split():
            process.send_signal(signal.Signals[name])
            _say("sent")
        if ended in ready:
            os.read(ended, 4096)
    code = process.returncode
    return code if code >= 0 else 128 - code


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def _end(process: subprocess.Popen[bytes], folder: str) -> int:
    process.kill()
    process.wait()
    if folder:
        _remove(folder)
    return 0


def _remove(folder: str) -> None:
    """Remove a folder; others of the same parent may still be ending, and write into it."""
    ends = time.monotonic() + REMOVED_WITHIN_S
    while os.path.lexists(folder) and time.monotonic() < ends:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
