"""Runs one command and ends it when the process that started the watchdog is gone.

This is a program of its own that needs only the standard library:

    python watchdog.py OUTPUT FOLDER COMMAND...

It starts the command with its output appended to OUTPUT, writes `pid N`, and then follows
its standard input: each line is the name of a signal, sent to the command and acknowledged
with `sent`. When its input ends or its parent changes, it kills the command (even a stopped
one) and, unless FOLDER is empty, removes that folder. When the command has ended, the
watchdog exits with the same exit code, or with 128 plus the signal number.

The watchdog is the parent of the command and has not reaped it, so the process id that it
signals cannot have been reused.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time

POLL_S = 0.5
"""Interval at which it compares its parent; the end of its input is noticed at once."""
REMOVED_WITHIN_S, REMOVE_RETRY_S = 10.0, 0.05


def main(output: str, folder: str, *command: str) -> int:
    """Run a command until it ends or the parent is gone; return the exit code."""
    parent = os.getppid()
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # SIGCHLD writes into this pipe, so one `select` waits for input and for the command's end.
    signal.set_wakeup_fd(wake)
    with open(output, "ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    _say(f"pid {process.pid}")
    while process.poll() is None:
        ready, _, _ = select.select([0, ended], [], [], POLL_S)
        commands = os.read(0, 4096) if 0 in ready else None
        # A fork of the parent may hold the pipe open after the parent has died; a changed
        # parent id reveals that case.
        if commands == b"" or os.getppid() != parent:
            return _end(process, folder)
        for name in (commands or b"").decode().split():
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
    """Remove a folder; other children of the same parent may still be writing into it."""
    ends = time.monotonic() + REMOVED_WITHIN_S
    while os.path.lexists(folder) and time.monotonic() < ends:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(REMOVE_RETRY_S)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
