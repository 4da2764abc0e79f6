"""The data plane file of a live run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import HOME

MANY_READ_IT_AT_ONCE = """
import sys, threading, time
from pathlib import Path
import msgspec._utils
from watchkeeper.real.member.data_plane_file import DataPlaneFile, DataPlaneState, LogState

resolve = msgspec._utils._eval_type

def resolve_slowly(*hint):
    time.sleep(0.005)  # and let others go on, as a busy machine does
    return resolve(*hint)

msgspec._utils._eval_type = resolve_slowly
path = Path(sys.argv[1])
DataPlaneFile(path).write(DataPlaneState({"clicks/0": LogState(7)}))
read = []

def reader():
    read.append(DataPlaneFile(path).read().logs["clicks/0"].base)

threads = [threading.Thread(target=reader) for _ in range(20)]
for thread in threads:
    thread.start()
    time.sleep(0.003)
for thread in threads:
    thread.join()
print(read)
"""


def test_the_first_reads_may_be_concurrent(tmp_path: Path) -> None:
    """The decoder of the file exists before any thread needs it.

    The library learns a type's format when it first decodes it, and a second thread that decodes
    the type at the same time crashes the process.
    """
    done = subprocess.run(
        [sys.executable, "-c", MANY_READ_IT_AT_ONCE, str(tmp_path / "cluster.json")],
        capture_output=True,
        text=True,
        cwd=HOME,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, str([7] * 20)), done.stderr
