"""Puts each mistake of clients and of logs into its runs, and counts in how many it is caught."""

from __future__ import annotations

from collections.abc import Callable

from model.clients.flaws import CLIENT_PLANTS
from model.clients.flaws import Plant as ClientPlant
from model.log.flaws import LOG_PLANTS
from model.log.flaws import Plant as LogPlant
from model.verdicts import Verdict
from tests.client_runs import RUNS
from tests.log_histories import HISTORIES
from watchkeeper.zoo_page import Shown


def verdicts(plant: ClientPlant) -> list[Verdict]:
    """What becomes of the property that a mistake of clients violates, in each of its runs."""
    return [
        cluster.finding(plant.violates.name, promise).verdict
        for cluster, promise in RUNS[plant.name](plant.clients)
    ]


def shown() -> list[Shown]:
    """A row for each mistake of clients, and then for each of logs."""
    return [
        *(_of_clients(plant) for plant in CLIENT_PLANTS.values()),
        *(_of_logs(plant) for plant in LOG_PLANTS.values()),
    ]


def _of_clients(plant: ClientPlant) -> Shown:
    found = verdicts(plant)
    return Shown(
        plant.name,
        plant.origin,
        plant.about,
        plant.violates.name,
        _first_line(RUNS[plant.name]),
        found.count(Verdict.VIOLATED),
        len(found),
    )


def _of_logs(plant: LogPlant) -> Shown:
    history = HISTORIES[plant.name]
    is_shown = plant.promise in history(plant.logs)
    return Shown(
        plant.name,
        plant.origin,
        plant.about,
        plant.promise,
        _first_line(history),
        int(is_shown),
        1,
    )


def _first_line(run: Callable[..., object]) -> str:
    return (run.__doc__ or "").partition("\n")[0]
