"""`watchkeeper explore --serve`: the page and the states that it serves, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.checker.test_explorer import SCENARIO
from watchkeeper.check.browse import Browser, BrowserServer
from watchkeeper.check.check import explore_scenario
from watchkeeper.cli.main import run_command
from watchkeeper.console.exit import Stop
from watchkeeper.scenarios import from_text


@pytest.fixture(scope="module")
def server() -> Iterator[BrowserServer]:
    """A server of a small search, in a thread."""
    browser = Browser(explore_scenario(from_text("small.yaml", SCENARIO)))
    with BrowserServer(browser) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def answer(server: BrowserServer, path: str) -> tuple[int, Any]:
    """The status and the value of an answer."""
    try:
        with urlopen(server.address + path) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


def test_a_place(server: BrowserServer) -> None:
    """The state after each choice, and the steps on the way."""
    _, first = answer(server, "state?way=")
    assert first["steps"] == []
    status, second = answer(server, "state?way=0")
    assert status == 200
    assert second["steps"] == [first["state"]["choices"][0]["step"]]
    assert second["state"]["processes"]["billing/1"]["phase"] == "running"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("state?way=99", 404, "choice 1 is 99, and 1 steps are enabled there"),
        ("state?way=one", 400, "'one' is no way: expected numbers with dots between them"),
        ("elsewhere", 404, "there is / and /state"),
    ],
)
def test_what_there_is_not(server: BrowserServer, path: str, status: int, words: str) -> None:
    """The answer has a sentence."""
    got, value = answer(server, path)
    assert got == status
    assert words in value["error"]


def test_a_port_in_use(server: BrowserServer) -> None:
    """The command ends with a sentence."""
    with pytest.raises(Stop, match=f"port {server.server_port} cannot be used: "):
        BrowserServer(server.browser, server.server_port)


def test_a_port_without_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An option must not be without effect."""
    (tmp_path / "small.yaml").write_text(SCENARIO)
    assert run_command(["explore", str(tmp_path / "small.yaml"), "--port", "1234"]) == 4
    assert "--port is the port of the page that --serve serves" in capsys.readouterr().err


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    """With the exit code of the search, and with the files of a small one."""
    (tmp_path / "small.yaml").write_text(SCENARIO)
    words = [sys.executable, "-m", "watchkeeper", "explore", "small.yaml", "--serve", "--quiet"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.fullmatch(r"browse it at (http://127.0.0.1:\d+/) \(Ctrl-C ends it\)\n", said)
        assert found, said
        with urlopen(found[1]) as page:
            assert b"<title>small, documented" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 1
    kept = {path.name for path in (tmp_path / "runs" / "small-documented-explore").iterdir()}
    assert {"explore.html", "states.png", "counterexample.html"} <= kept
