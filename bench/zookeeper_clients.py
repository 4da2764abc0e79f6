"""Clients in other languages: their output on Apache's server and on ours has to be the same.

    python bench/zookeeper_clients.py [--only java,go] [--show] [--json]

- **Java**: Apache's own command-line client, from PySpark's jars, reads a script of 40 commands.
  Its watch events come at any moment, so they are compared apart from the rest. Times are taken
  out, session ids become "a session".
- **Go**: `go_client/main.go`, a scripted session over `github.com/samuel/go-zookeeper`, built
  here if Go is there: znodes, multis, watches, identities, five clients that contend for a lock,
  a connection that is lost and found, a session that expires. With `--go-source FOLDER` it is
  built with a copy of its successor, `github.com/go-zk/zk`.

Exit code 1 if an output differs, 2 if a client could not run on Apache's server.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import KINDS, NAMES, Kind, Wanted, start

from watchkeeper.real.zookeeper.jars import jar_folder, zookeeper_jars
from watchkeeper.real.zookeeper.java import find_java

GO_CLIENT = Path(__file__).parent / "go_client"
PREDECESSOR, SUCCESSOR = "github.com/samuel/go-zookeeper", "github.com/go-zk/zk"
TIMEOUT_S = 120

COMMANDS = """\
create /cli hello
create /cli again
create /cli/a x
create -s /cli/s- one
create -s /cli/s- two
create -e /cli/e gone
create -e -s /cli/es- gone
create /cli/e/child x
create /none/deep x
create -c /cli/container
create -t 3600000 /cli/ttl x
create /cli/private secret digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa
get /cli
get -s /cli
get /cli/private
get /none
addauth digest ann:secret
get /cli/private
getAcl /cli/private
getAcl -s /cli
setAcl /cli/a world:anyone:rw
getAcl /cli/a
setAcl /cli/a auth:ignored:cdrwa
getAcl /cli/a
set /cli changed
set -v 7 /cli wrong
set -s -v 1 /cli right
stat /cli
stat -w /cli/a
ls -w /cli
ls -s /cli
ls -R /cli
getEphemerals /cli
getAllChildrenNumber /cli
set /cli/a fires
delete /cli/a
delete -v 3 /cli/container
deleteall /cli/container
sync /cli
whoami
version
close
quit
"""
"""What the Java client reads. `version` prints the client's own."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a client has printed, parts that must not be mixed apart."""

    code: int
    parts: dict[str, str]
    seconds: float


# --- Apache's command-line client ------------------------------------------------------------


def java_client(address: str) -> Output:
    """Let it read the commands."""
    jars = ":".join(map(str, (*zookeeper_jars(), *jar_folder().glob("jline-2*.jar"))))
    command = (
        *(str(find_java()), "-XX:TieredStopAtLevel=1", "-Dlog4j2.disableJmx=true"),
        *("-Dlog4j2.level=OFF", "-cp", jars, "org.apache.zookeeper.ZooKeeperMain"),
        *("-server", address),
    )
    begun = time.perf_counter()
    done = subprocess.run(
        command, input=COMMANDS, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    took_s = time.perf_counter() - begun
    events, answers = without_events(done.stdout)
    parts = {
        "answers": normalised(answers, address),
        "errors": normalised(done.stderr, address),
        "events": normalised(events, address),
    }
    return Output(done.returncode, parts, took_s)


EVENT = re.compile(r"\n?WATCHER::\n\n(WatchedEvent [^\n]*)\n")


def without_events(text: str) -> tuple[str, str]:
    """The events that a client has printed, and the rest."""
    return "\n".join(EVENT.findall(text)), EVENT.sub("", text)


def normalised(text: str, address: str) -> str:
    """Replace what two servers cannot share: times, session ids, addresses."""
    text = text.replace(address, "HOST:PORT")
    text = re.sub(
        r"^(ctime|mtime) = (?!Thu Jan 01 00:00:00 UTC 1970).*$", r"\1 = a time", text, flags=re.M
    )
    return re.sub(r"ephemeralOwner = 0x[1-9a-f][0-9a-f]+", "ephemeralOwner = a session", text)


# --- the Go client ---------------------------------------------------------------------------


def go_client(source: Path | None, stack: ExitStack) -> Callable[[str], Output] | None:
    """Build the client; None if there is no Go."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        return None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for file in GO_CLIENT.iterdir():
        shutil.copy(file, folder)
    if source is not None:
        with_successor(folder, source)
    done = subprocess.run(
        [go, "build", "-mod=mod", "-o", "client", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the Go client cannot be built:\n{done.stderr}")

    def run(address: str) -> Output:
        begun = time.perf_counter()
        done = subprocess.run(
            [folder / "client", address],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        took_s = time.perf_counter() - begun
        return Output(done.returncode, {"output": done.stdout, "errors": done.stderr}, took_s)

    return run


def with_successor(folder: Path, source: Path) -> None:
    """Build with a copy of the successor, whose calls are the same."""
    main = folder / "main.go"
    main.write_text(main.read_text().replace(f"{PREDECESSOR}/zk", SUCCESSOR))
    (folder / "go.mod").write_text(
        f"module client\n\ngo 1.20\n\nrequire {SUCCESSOR} v0.0.0\n\n"
        f"replace {SUCCESSOR} => {source.resolve()}\n"
    )
    (folder / "go.sum").unlink()


# --- comparison ------------------------------------------------------------------------------


def compared(name: str, run: Callable[[str], Output], kinds: tuple[Kind, ...]) -> list[Output]:
    """What a client prints on servers of each kind, fresh ones."""
    outputs = []
    for kind in kinds:
        with start(kind, Wanted()) as zookeeper:
            outputs.append(run(zookeeper.addresses[0]))
        print(f"{name} on {NAMES[kind]}: {outputs[-1].seconds:.1f} s", file=sys.stderr)
    return outputs


def differences(outputs: list[Output], kinds: tuple[Kind, ...]) -> list[str]:
    """The lines that differ, as a diff for each part."""
    one, other = outputs[0], outputs[-1]
    lines = [] if one.code == other.code else [f"exit codes {one.code} and {other.code}"]
    for part in one.parts:
        lines += difflib.unified_diff(
            one.parts[part].splitlines(),
            other.parts[part].splitlines(),
            f"{part} on {NAMES[kinds[0]]}",
            f"{part} on {NAMES[kinds[-1]]}",
            lineterm="",
        )
    return lines


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--only", default="java,go", help="which clients (java,go)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="java, python, or both (both)")
    parser.add_argument("--show", action="store_true", help="print the output on the first kind")
    parser.add_argument("--go-source", type=Path, help=f"a copy of {SUCCESSOR} to build with")
    options = parser.parse_args()
    options.kinds = tuple(options.kinds.split(","))
    return options


def main() -> None:
    options = parsed()
    report = Report(
        f"clients on {' and '.join(NAMES[kind] for kind in options.kinds)} ZooKeeper",
        ("client", "lines", "that differ", "exit code"),
    )
    is_run = True
    with ExitStack() as stack:
        clients = {"java": java_client, "go": go_client(options.go_source, stack)}
        for name in options.only.split(","):
            run = clients[name]
            if run is None:
                report.notes.append("there is no Go on this machine: its client is left out")
                continue
            outputs = compared(name, run, options.kinds)
            is_run &= outputs[0].code == 0
            add(report, name, outputs, differences(outputs, options.kinds))
            if options.show:
                report.notes += [text for text in outputs[0].parts.values() if text]
    report.show(as_json=options.json)
    sys.exit(2 if not is_run else any(bar.verdict == "NOT MET" for bar in report.bars))


def add(report: Report, name: str, outputs: list[Output], lines: list[str]) -> None:
    """A row and a bar for a client."""
    printed = sum(len(text.splitlines()) for text in outputs[0].parts.values())
    differing = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in lines)
    report.rows.append([name, str(printed), str(differing), str(outputs[0].code)])
    report.bars.append(Bar(f"{name}: lines that differ", "at most", 0, "", once(differing)))
    report.data[name] = {"lines": printed, "differing": lines, "code": outputs[0].code}
    report.notes += lines


if __name__ == "__main__":
    main()
