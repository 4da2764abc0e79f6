"""The mistakes of a newcomer, each with its exit code and the sentence that it has to get."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

from bench.newcomer_steps.environment import Environment
from bench.newcomer_steps.tasks import Row

SCENARIO = """\
name: mine
about: a group shares a topic
clusters: {main: {brokers: 1, topics: {clicks: {partitions_per_broker: 2}}}}
groups: {billing: {consumers: 2, streams: {clicks: 1}}}
"""
FILES = {
    "mine.yaml": SCENARIO,
    "tab.yaml": SCENARIO + "timeline:\n\t- {at: 1s, crash: billing/0}\n",
    "key.yaml": SCENARIO + "timelime: []\n",
    "unit.yaml": SCENARIO + "timeline: [{at: 14, crash: billing/0}]\n",
    "target.yaml": SCENARIO + "timeline: [{at: 14s, crash: billing/7}]\n",
    "empty.yaml": "",
    "binary.yaml": "\x00\x01",
    "profile.yaml": "latency: 3\n",
}
Mistake = tuple[str, str, str]
MISTAKES: tuple[Mistake, ...] = (
    ("wrong path", "run main.yaml", "No such file"),
    ("wrong name", "run consumer-clash", "did you mean 'consumer-crash'?"),
    ("wrong command", "rum consumer-crash", "Did you mean 'run'?"),
    ("wrong option", "run consumer-crash --sede 1", "Did you mean '--seed'?"),
    ("wrong variant", "run consumer-crash --variant kafka_8", "did you mean"),
    ("wrong seed", "run consumer-crash --seed many", "is not a valid integer"),
    ("wrong seeds", "sweep mine.yaml --seeds 9..1 --out s", "is no seed"),
    ("tab in YAML", "run tab.yaml", "tab.yaml:"),
    ("wrong key in YAML", "run key.yaml", "did you mean"),
    ("no unit in YAML", "run unit.yaml", "unit.yaml:"),
    ("no such member in YAML", "run target.yaml", "billing/7"),
    ("empty file", "run empty.yaml", "empty.yaml"),
    ("binary file", "run binary.yaml", "binary.yaml"),
    ("folder for a file", "run folder", "it is a folder; name a file in it"),
    ("file for a folder", "run mine.yaml --out mine.yaml", "is a file, and no folder"),
    ("no run to open", "open folder", "has no run"),
    ("wrong profile", "run mine.yaml --profile profile.yaml", "profile.yaml"),
    ("wrong key in watchkeeper.toml", "run mine.yaml", "did you mean 'seed'?"),
    ("wrong variable", "run mine.yaml", "did you mean WATCHKEEPER_SEED?"),
    ("wrong port", "zookeeper --port 70000", "70000"),
    ("port in use", "zookeeper --port {used}", "{used}"),
    ("nothing at an address", "audit 127.0.0.1:{free}", "refuses connections"),
    ("no such host", "audit no-such-host.invalid:2181", "no host has the name"),
    ("no ZooKeeper at an address", "audit 127.0.0.1:{web}", "something else than a ZooKeeper"),
    ("no address", "audit zk1:port", "is no address of a ZooKeeper"),
    ("hosts without --world live", "run mine.yaml --zookeeper zk1:2181", "add --world live"),
    ("Java missing", "run mine.yaml --world live --zookeeper java", "pip install"),
    ("extra missing: spark", "analyze runs", "pip install 'watchkeeper[spark]'"),
    ("extra missing: virtual", "virtual test_x.py", "pip install 'watchkeeper[virtual]'"),
    (
        "wrong setting",
        "broker --log-dir logs --set num.partition=1",
        "did you mean num.partitions?",
    ),
)
"""What is wrong, the command, and what its sentence has; `{free}` and others are ports."""
SPECIAL = {
    "wrong key in watchkeeper.toml": {"file": "sede = 1\n"},
    "wrong variable": {"variable": "WATCHKEEPER_SEDE"},
}
USAGE = 4


def mistakes(environment: Environment) -> Iterator[Row]:
    """Make each mistake; a row for each, with the sentence that it gets."""
    for name, text in FILES.items():
        (environment.folder / name).write_text(text)
    (environment.folder / "folder").mkdir(exist_ok=True)
    with ExitStack() as stack:
        ports = _ports(stack)
        for what, command, wanted in MISTAKES:
            yield _made(environment, what, command.format(**ports), wanted.format(**ports))


def _made(environment: Environment, what: str, command: str, wanted: str) -> Row:
    special = SPECIAL.get(what, {})
    config = environment.folder / "watchkeeper.toml"
    if "file" in special:
        config.write_text(special["file"])
    variables = {special["variable"]: "1"} if "variable" in special else {}
    done = environment.run("watchkeeper", *command.split(), variables=variables)
    config.unlink(missing_ok=True)
    problem = "" if wanted in done.said else f"it says nothing of {wanted!r}"
    if done.code != USAGE:
        problem = f"exit code {done.code}, expected {USAGE}"
    if "defect" in done.said or "Traceback" in done.said:
        problem = "it is called a defect"
    return Row(what, f"watchkeeper {command}", done.code, done.sentence, done.seconds, problem)


def _ports(stack: ExitStack) -> dict[str, int]:
    """A port that a server uses, one of a web server, and one that none uses."""
    used, web, free = (
        stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)
    )
    Thread(target=_say_http, args=(web,), daemon=True).start()
    servers = {"used": used, "web": web, "free": free}
    ports = {name: one.getsockname()[1] for name, one in servers.items()}
    free.close()
    return ports


def _say_http(server: socket.socket) -> None:
    while True:
        try:
            line, _ = server.accept()
        except OSError:
            return
        with line:
            line.recv(1_000)
            line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
