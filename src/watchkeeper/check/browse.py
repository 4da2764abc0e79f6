"""Browsing what was searched: an explorer of its states, its page, and a server for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from http.server import HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from watchkeeper.check.check import Explored, bound_in_words
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.replay_steps import NoSuchStep, path_of, system_for
from watchkeeper.checker.explorer.explorer import Explorer, NoSuchChoice
from watchkeeper.console.exit import USAGE, Stop, reason_of
from watchkeeper.console.http import QuietHandler
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.counterexample.counterexample import Counterexample, ScheduledStep
from watchkeeper.model.properties.verdicts import Verdict, counted
from watchkeeper.reports.explorer.html import (
    Around,
    Browsed,
    GivenPath,
    explorer_page,
    path_given,
    state_data,
    write_counterexample_html,
    write_explorer_html,
)
from watchkeeper.reports.explorer.png import write_states_png

HOST = "127.0.0.1"
MOST_STATES = 1_000
"""A page holds no more. A search with more states is browsed with a server; the page of its
counterexample holds those near the path."""


class Browser:
    """What was searched, to be browsed; its explorer is built once, when it is first needed."""

    def __init__(self, explored: Explored) -> None:
        self.explored = explored

    @cached_property
    def explorer(self) -> Explorer:
        """The explorer, of a system in which the nearest counterexample can be followed."""
        plan, bounds = self.explored.plan, self.explored.bounds
        nearest = self.explored.counterexample
        if nearest is None:
            return Explorer(ClusterSystem(plan, bounds, folds=self.explored.options.reduces))
        return Explorer(system_for(plan, bounds, nearest.schedule.steps)[0])

    @cached_property
    def browsed(self) -> Browsed:
        """What the page says of the search, and the paths of its counterexamples."""
        return Browsed(
            scenario=self.explored.plan.name,
            variant=self.explored.plan.variant,
            bound=bound_in_words(self.explored),
            says=_says(self.explored),
            nodes=self.explorer.system.actors,
            paths=dict(self._paths()),
        )

    def _paths(self) -> Iterator[tuple[str, GivenPath]]:
        for found in self.explored.counterexamples:
            try:
                choices = self.explorer.choices_of(_scheduled(found))
            except NoSuchStep:  # it was found with other reads folded into its steps
                continue
            limit = self.explored.limit_of(found.violates)
            yield found.violates, path_given(found, choices, limit)

    def page(self) -> bytes:
        """Return the page that gets its states from this browser."""
        return explorer_page(self.browsed)

    def states(self, choices: list[int], since: int) -> list[dict[str, Any]]:
        """Return the states along a way from a number on; raises NoSuchChoice."""
        way = [self.explorer.first, *(one.after for one in self.explorer.way(choices))]
        return [state_data(self.explorer.state(state)) for state in way[since:]]

    def write_counterexample(
        self, counterexample: Counterexample, folder: Path, command: str
    ) -> str:
        """Write the page of the nearest counterexample; `command` serves all states."""
        path = path_of(self.explorer.system, _scheduled(counterexample))
        return write_counterexample_html(
            counterexample,
            folder,
            self.explored.limit_of(counterexample.violates),
            around=Around(self.explorer.around(path, MOST_STATES), command),
        )

    def write_pages(self, folder: Path) -> list[str]:
        """Write the page and the picture of a small search, and return their names."""
        if self.explored.searched.progress.states > MOST_STATES:
            return []
        graph = self.explorer.graph(MOST_STATES)
        if graph is None:
            return []
        names = [write_explorer_html(self.browsed, graph, folder)]
        return [*names, *filter(None, [write_states_png(self.browsed, graph, folder)])]


def _scheduled(counterexample: Counterexample) -> list[ScheduledStep]:
    """Return the steps of a counterexample, once round its cycle."""
    return [step.scheduled for step in counterexample.all_steps]


def _says(explored: Explored) -> str:
    names = ", ".join(explored.violated)
    if explored.verdict is Verdict.VIOLATED:
        return f"violated: {names}"
    states = counted(explored.searched.progress.states, "state")
    return f"{explored.verdict.value} in {states} of the search"


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
        elif wanted.path == "/states":
            query = {word: values[0] for word, values in parse_qs(wanted.query).items()}
            self._answer_json(*self._states(query.get("way", ""), query.get("from", "0")))
        else:
            text = "there is / and /states?way=0.1.2&from=1"
            self._answer_json(HTTPStatus.NOT_FOUND, _error(text))

    def _states(self, way: str, since: str) -> tuple[HTTPStatus, Any]:
        try:
            choices = [int(word) for word in way.split(".") if word]
        except ValueError:
            text = f"{way!r} is no way: expected numbers with dots between them, such as 0.1.2"
            return HTTPStatus.BAD_REQUEST, _error(text)
        if not since.isdecimal():
            text = f"from={since!r} is no number of a state: expected 0 or more"
            return HTTPStatus.BAD_REQUEST, _error(text)
        try:
            return HTTPStatus.OK, {"states": self.server.browser.states(choices, int(since))}
        except NoSuchChoice as error:
            return HTTPStatus.NOT_FOUND, _error(str(error))

    def _answer_json(self, status: HTTPStatus, value: Any) -> None:
        self.answer(status, "application/json", msgspec.json.encode(value))


def _error(text: str) -> dict[str, str]:
    return {"error": text}


def serve(browser: Browser, port: int) -> None:
    """Serve what was searched until Ctrl-C; Stop where the port cannot be used."""
    INTERRUPTS.raise_from_now_on()
    with BrowserServer(browser, port) as server:
        print(f"browse it at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
