"""Browsing what was searched: an explorer of its states, its page, and a server for it."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from watchkeeper.check.check import Explored, bound_in_words
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import scheduled_step_of
from watchkeeper.checker.counterexample.replay_steps import NoSuchStep, system_for
from watchkeeper.checker.explorer.explorer import Explorer, NoSuchChoice
from watchkeeper.console.exit import USAGE, Stop, reason_of
from watchkeeper.console.http import QuietHandler
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.properties.verdicts import Verdict, counted
from watchkeeper.reports.explorer.html import (
    Browsed,
    explorer_page,
    state_data,
    step_data,
    write_explorer_html,
)
from watchkeeper.reports.explorer.png import write_states_png

HOST = "127.0.0.1"
MOST_STATES = 1_000
"""A search with more states is browsed with a server, not in a page that holds all of them."""


class Browser:
    """What was searched, to be browsed."""

    def __init__(self, explored: Explored) -> None:
        self.explorer = Explorer(_system_of(explored))
        self.browsed = Browsed(
            scenario=explored.plan.name,
            variant=explored.plan.variant,
            bound=bound_in_words(explored),
            says=_says(explored),
            nodes=self.explorer.system.actors,
            ways=self._ways(explored),
        )

    def _ways(self, explored: Explored) -> dict[str, list[int]]:
        ways = {}
        for found in explored.counterexamples:
            try:
                ways[found.violates] = self.explorer.choices_of(found.schedule.steps)
            except NoSuchStep:  # it was found with other reads folded into its steps
                continue
        return ways

    def page(self) -> bytes:
        """Return the page that gets its states from this browser."""
        return explorer_page(self.browsed)

    def place(self, choices: list[int]) -> dict[str, Any]:
        """Return the state of a place and the steps that lead there; raises NoSuchChoice."""
        way = self.explorer.way(choices)
        state = way[-1].after if way else self.explorer.first
        return {
            "steps": [step_data(scheduled_step_of(self.explorer.system, one)) for one in way],
            "state": state_data(self.explorer.state(state)),
        }


def _system_of(explored: Explored) -> ClusterSystem:
    """Return a system in which the nearest counterexample can be followed."""
    if explored.counterexample is None:
        return ClusterSystem(explored.plan, explored.bounds, folds=explored.options.reduces)
    steps = explored.counterexample.schedule.steps
    return system_for(explored.plan, explored.bounds, steps)[0]


def _says(explored: Explored) -> str:
    names = ", ".join(explored.violated)
    if explored.verdict is Verdict.VIOLATED:
        return f"violated: {names}"
    states = counted(explored.searched.progress.states, "state")
    return f"{explored.verdict.value} in {states} of the search"


def write_pages(explored: Explored, folder: Path) -> list[str]:
    """Write the page and the picture of a small search, and return their names."""
    if explored.searched.progress.states > MOST_STATES:
        return []
    browser = Browser(explored)
    graph = browser.explorer.graph(MOST_STATES)
    if graph is None:
        return []
    names = [write_explorer_html(browser.browsed, graph, folder)]
    return [*names, *filter(None, [write_states_png(browser.browsed, graph, folder)])]


# --- the server ------------------------------------------------------------------------


class BrowserServer(HTTPServer):
    """Serves the page of a browser, and its states, on the loopback interface."""

    def __init__(self, browser: Browser, port: int = 0) -> None:
        self.browser = browser
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise Stop(USAGE, f"port {port} cannot be used: {reason_of(error)}") from None

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOST}:{self.server_port}/"


class _Handler(QuietHandler):
    server: BrowserServer

    def do_GET(self) -> None:
        """Answer with the page, or with the state of a place."""
        wanted = urlsplit(self.path)
        if wanted.path == "/":
            self.answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.browser.page())
        elif wanted.path == "/state":
            self._answer_json(*self._place(parse_qs(wanted.query).get("way", [""])[0]))
        else:
            self._answer_json(HTTPStatus.NOT_FOUND, _error("there is / and /state?way=0.1.2"))

    def _place(self, way: str) -> tuple[HTTPStatus, Any]:
        try:
            choices = [int(word) for word in way.split(".") if word]
        except ValueError:
            text = f"{way!r} is no way: expected numbers with dots between them, such as 0.1.2"
            return HTTPStatus.BAD_REQUEST, _error(text)
        try:
            return HTTPStatus.OK, self.server.browser.place(choices)
        except NoSuchChoice as error:
            return HTTPStatus.NOT_FOUND, _error(str(error))

    def _answer_json(self, status: HTTPStatus, value: Any) -> None:
        self.answer(status, "application/json", msgspec.json.encode(value))


def _error(text: str) -> dict[str, str]:
    return {"error": text}


def serve(explored: Explored, port: int) -> None:
    """Serve what was searched until Ctrl-C; Stop where the port cannot be used."""
    INTERRUPTS.raise_from_now_on()
    with BrowserServer(Browser(explored), port) as server:
        print(f"browse it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
