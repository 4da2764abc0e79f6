"""An audit as numbers, over HTTP, and with a severity from which on it fails."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests import HOME
from tests.support.live_registry import Cluster
from tests.support.registries import GROUP, Shape, healthy
from watchkeeper.cli.main import run_command
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.finding import KINDS, SEVERITIES, FindingKind
from watchkeeper.model.audit.lag_window import LagWindows
from watchkeeper.model.broker.registration import Broker
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.registry import paths
from watchkeeper.operate.audit import audit
from watchkeeper.operate.audit.metrics import HELP, PREFIX, metrics_text
from watchkeeper.operate.audit.server import LastAudit, serving
from watchkeeper.real.member.data_plane_file import DataPlaneFile, DataPlaneState, LogState
from watchkeeper.real.member.rate_server import RateServer
from watchkeeper.real.ports import free_ports
from watchkeeper.testing import ZooKeeper

SAMPLE = re.compile(r'(?P<name>\w+)(?:\{(?P<labels>\w+="[^"\n]*"(?:,\w+="[^"\n]*")*)\})? \S+')
"""A line of the text format."""
EXAMPLES = HOME / "examples" / "monitoring"


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A registry with one healthy group."""
    with ZooKeeper() as zookeeper:
        hosts = zookeeper.hosts.partition("/")[0]
        with Cluster.of_test(hosts, request) as made:
            made.write(healthy(Shape()))
            yield made


def lose_owner(cluster: Cluster) -> None:
    cluster.client(0).delete(paths.owner(GROUP, Partition("clicks", "0")))


def numbers_of(text: str) -> dict[str, float]:
    """Each sample with its value; every line has the form that Prometheus demands."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            assert SAMPLE.fullmatch(line), line
            sample, _, value = line.rpartition(" ")
            assert sample not in found, "each sample is there once"
            found[sample] = float(value)
    return found


def test_numbers_of_an_audit(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    lost = 'findings{kind="no owner",severity="critical",group="billing"}'

    assert run_command(["audit", cluster.hosts, "--prometheus"]) == 0
    found = numbers_of(capsys.readouterr().out)
    assert found[f"{PREFIX}up"] == 1
    assert found[f'{PREFIX}verdict{{verdict="holds"}}'] == 1
    assert found[f"{PREFIX}brokers"] == 2
    assert found[f'{PREFIX}partitions{{group="billing",topic="clicks"}}'] == 4
    assert found[PREFIX + lost] == 0

    lose_owner(cluster)
    assert run_command(["audit", cluster.hosts, "--prometheus"]) == 1
    found = numbers_of(capsys.readouterr().out)
    assert found[PREFIX + lost] == 1
    assert found[f'{PREFIX}owned_partitions{{group="billing",topic="clicks"}}'] == 3
    assert found[f'{PREFIX}verdict{{verdict="violated"}}'] == 1


def test_an_audit_fails_from_a_severity_on(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stray claim is a warning; the report has it whatever the exit code."""
    cluster.client(0).create(paths.owner(GROUP, Partition("clicks", "9")), b"billing_c0")

    codes = {
        severity: run_command(["audit", cluster.hosts, "--fail-on", severity, "--json"])
        for severity in ("notice", "warning", "critical")
    }
    assert codes["notice"] == codes["warning"] == 1
    decoder = json.JSONDecoder()
    report, _ = decoder.raw_decode(capsys.readouterr().out)
    kinds = {row["kind"]: row["severity"] for row in report["groups"][0]["findings"]}
    assert kinds["stray claim"] == "warning"
    assert codes["critical"] == (1 if "critical" in kinds.values() else 0)


def test_every_kind_has_a_severity() -> None:
    assert set(SEVERITIES) == set(FindingKind) == set(KINDS)


def test_labels_are_escaped_and_nothing_is_known_before_the_first_audit() -> None:
    assert metrics_text(None, is_up=False).splitlines()[-1] == f"{PREFIX}up 0"


def test_it_is_served_until_a_signal_comes(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "watchkeeper", "audit", cluster.hosts, "--listen", "0"]
    command += ["--watch", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = line.split(" at ")[1].partition("/metrics")[0]
            assert url.startswith("http://127.0.0.1:")
            with urlopen(f"{url}/health", timeout=20) as answer:
                assert answer.read() == b"ok\n"
            with urlopen(f"{url}/metrics", timeout=20) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert numbers_of(answer.read().decode())[f"{PREFIX}up"] == 1
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{url}/", timeout=20)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            process.kill()


def test_what_cannot_be_read_is_no_health() -> None:
    last = LastAudit(every_s=15.0)
    last.fail("the connection to zk1:2181 was lost")
    with serving("0", last, allows_remote=False) as url:
        with pytest.raises(HTTPError, match="503") as failed:
            urlopen(f"{url}/health", timeout=20)
        assert failed.value.read() == b"the connection to zk1:2181 was lost\n"
        with urlopen(f"{url}/metrics", timeout=20) as answer:
            assert numbers_of(answer.read().decode()) == {f"{PREFIX}up": 0}


WRONG = {
    ("--listen", "nine"): "--listen nine: expected PORT or HOST:PORT",
    ("--listen", "0.0.0.0:0"): "add --allow-remote if that is meant",
    ("--listen", "0", "--json"): "exclude each other",
    ("--allow-remote",): "--allow-remote goes with --listen",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_served_is_said_in_a_sentence(
    words: tuple[str, ...], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["audit", cluster.hosts, *words]) == 4
    assert WRONG[words] in capsys.readouterr().err


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    text = (EXAMPLES / "dashboard.json").read_text()
    panels = json.loads(text)["panels"]

    used = set(re.findall(rf"{PREFIX}(\w+)", text))
    assert used <= set(HELP)
    assert len(used) > 6
    assert all(panel["targets"][0]["expr"] for panel in panels)


def test_the_image_runs_options_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Its variables are those of `audit`."""
    run_command(["defaults", "--all"])
    known = capsys.readouterr().out
    used = re.findall(r"WATCHKEEPER_\w+", (EXAMPLES / "Dockerfile").read_text())

    assert len(used) == 2
    assert all(variable in known for variable in used)


# --- the lag over several audits -------------------------------------------------------


def test_a_group_that_does_not_commit(cluster: Cluster, tmp_path: Path) -> None:
    """A window of audits shows it; an offset that is written again is another finding."""
    [port] = free_ports(1)
    path = paths.broker(0)
    data, _ = cluster.client(0x100).get(path)
    cluster.client(0x100).set(path, data.replace(b"9000", b"%d" % port))
    me = Broker("broker/0", 0, "h", port, "0.8", VARIANTS["hardened"])
    file = DataPlaneFile(tmp_path / "cluster.json")
    file.write(DataPlaneState(logs={"clicks/0": LogState(50)}, hosts={"broker/0": ["clicks/0"]}))
    server = RateServer(port, me, file, lambda: 0)
    offset = paths.offset(GROUP, Partition("clicks", "0"))
    request = audit.request(cluster.hosts, None, lag=True, lag_window=3)
    windows = LagWindows(request.lag_window)

    def kinds() -> list[str]:
        [group] = audit.look(opened, request, windows).audit.groups
        return [finding.kind.value for finding in group.findings]

    try:
        with audit.reader(request) as opened:
            assert [kinds() for _ in range(3)] == [[], [], ["stopped"]]
            cluster.client(0).set(offset, cluster.client(0).get(offset)[0])
            assert kinds() == ["stalled"]
            cluster.client(0).set(offset, b"50")
            assert kinds() == []
    finally:
        server.shutdown()
        server.server_close()


def test_a_window_without_a_watch(capsys: pytest.CaptureFixture[str]) -> None:
    """An option must not be without effect."""
    assert run_command(["audit", "127.0.0.1:1", "--lag", "--lag-window", "3"]) == 4
    assert "--lag-window goes with --lag and --watch" in capsys.readouterr().err
