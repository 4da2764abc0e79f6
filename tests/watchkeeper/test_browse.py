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
from bench.support.devtools import browser

from tests.checker.test_explorer import SCENARIO
from tests.support.browser import needs_browser
from watchkeeper.check import browse
from watchkeeper.check.browse import Browser, BrowserServer
from watchkeeper.check.check import explore_scenario
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.explorer.explorer import Explorer
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


def test_the_states_along_a_way(server: BrowserServer) -> None:
    """From a number on, with the steps that are enabled in each."""
    _, first = answer(server, "states?way=")
    status, both = answer(server, "states?way=0")
    assert status == 200
    assert both["states"][:1] == first["states"]
    assert answer(server, "states?way=0&from=1") == (200, {"states": both["states"][1:]})
    [before, after] = both["states"]
    assert before["choices"][0]["step"]["node"] == "billing/1"
    assert after["processes"]["billing/1"]["phase"] == "running"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("states?way=99", 404, "choice 1 is 99, and 1 steps are enabled there"),
        ("states?way=one", 400, "'one' is no way: expected numbers with dots between them"),
        ("states?way=0&from=-1", 400, "from='-1' is no number of a state"),
        ("elsewhere", 404, "there is / and /states"),
    ],
)
def test_what_there_is_not(server: BrowserServer, path: str, status: int, words: str) -> None:
    """The answer has a sentence."""
    got, value = answer(server, path)
    assert got == status
    assert words in value["error"]


IN_THE_PAGE = """
(async () => {
  const asked = [];
  const plain = window.fetch;
  window.fetch = (address) => { asked.push(address); return plain(address); };
  await takeAt(0, 0);
  await go([0, 0]);
  await choose(1);
  return [asked, location.hash, chosen, way, statePane.querySelector("h2").textContent];
})()
"""


@needs_browser
def test_the_page_gets_each_state_once(server: BrowserServer) -> None:
    """Going back on the path needs no request; the picture has all of the path."""
    with browser() as tab:
        tab.open(server.address)
        tab.run("show([])")
        requests, address, chosen, way, title = tab.run(IN_THE_PAGE)
        assert requests == ["states?way=0&from=1", "states?way=0.0&from=2"]
        assert (address, chosen, way) == ("#0", 1, [0, 0])
        assert title == "Step 1 of 2"
        assert tab.run("rows.length") == 3
        assert tab.run("body.querySelectorAll('svg path').length") > 0


def test_the_command_builds_one_explorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the search and the page that is served have the same one."""
    (tmp_path / "small.yaml").write_text(SCENARIO)
    built, served = list[Explorer](), list[Browser]()

    class Counted(Explorer):
        def __init__(self, system: ClusterSystem) -> None:
            super().__init__(system)
            built.append(self)

    monkeypatch.setattr(browse, "Explorer", Counted)
    monkeypatch.setattr(browse, "serve", lambda browser, _: served.append(browser))
    words = ["explore", str(tmp_path / "small.yaml"), "--serve", "--out", str(tmp_path / "runs")]
    assert run_command([*words, "--quiet"]) == 1
    assert [one.explorer for one in served] == built
    assert (tmp_path / "runs" / "small-documented-explore" / "explore.html").is_file()


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
