"""The file that tells brokers and fetchers of a live run how far the logs have come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.readme_pages import HOME

MANY_READ_IT_AT_ONCE = """
import sys, threading, time
from pathlib import Path
import msgspec._utils
from real.cluster import ClusterFile, ClusterState, LogState

resolve = msgspec._utils._eval_type

def resolve_slowly(*hint):
    time.sleep(0.005)  # and let others go on, as a busy machine does
    return resolve(*hint)

msgspec._utils._eval_type = resolve_slowly
path = Path(sys.argv[1])
ClusterFile(path).write(ClusterState({"clicks/0": LogState(7)}))
read = []

def reader():
    read.append(ClusterFile(path).read().logs["clicks/0"].base)

threads = [threading.Thread(target=reader) for _ in range(20)]
for thread in threads:
    thread.start()
    time.sleep(0.003)
for thread in threads:
    thread.join()
print(read)
"""


def test_the_first_readings_may_come_at_once(tmp_path: Path) -> None:
    """What there is to know of the file's form is known before any thread asks for it.

    The library that decodes it learns a type's form when it first meets it, and a second
    thread that meets it meanwhile brings the whole process down.
    """
    done = subprocess.run(
        [sys.executable, "-c", MANY_READ_IT_AT_ONCE, str(tmp_path / "cluster.json")],
        capture_output=True,
        text=True,
        cwd=HOME,
        check=False,
    )

    assert (done.returncode, done.stdout.strip()) == (0, str([7] * 20)), done.stderr
