"""Runs each mutant of clients and logs, and counts the runs that detect it."""

from __future__ import annotations

from collections.abc import Callable

from docs.mutants_page import Shown

from tests.mutants.clients import CLIENT_MUTANTS, ClientMutant
from tests.mutants.log import LOG_MUTANTS, LogMutant
from tests.support.log.histories import HISTORIES
from tests.support.messages.client_runs import RUNS
from watchkeeper.model.properties.verdicts import Verdict


def verdicts(mutant: ClientMutant) -> list[Verdict]:
    """Return the verdict of the violated property, in each run of a mutant of clients."""
    return [
        cluster.finding(mutant.violates.name, guarantee).verdict
        for cluster, guarantee in RUNS[mutant.name](mutant.clients)
    ]


def shown() -> list[Shown]:
    """Return a row for each mutant of clients, and then for each of logs."""
    return [
        *(_of_clients(mutant) for mutant in CLIENT_MUTANTS.values()),
        *(_of_logs(mutant) for mutant in LOG_MUTANTS.values()),
    ]


def _of_clients(mutant: ClientMutant) -> Shown:
    found = verdicts(mutant)
    return Shown(
        mutant.name,
        mutant.origin,
        mutant.about,
        mutant.violates.name,
        _first_line(RUNS[mutant.name]),
        found.count(Verdict.VIOLATED),
        len(found),
    )


def _of_logs(mutant: LogMutant) -> Shown:
    history = HISTORIES[mutant.name]
    is_shown = mutant.guarantee in history(mutant.logs)
    return Shown(
        mutant.name,
        mutant.origin,
        mutant.about,
        mutant.guarantee,
        _first_line(history),
        int(is_shown),
        1,
    )


def _first_line(run: Callable[..., object]) -> str:
    return (run.__doc__ or "").partition("\n")[0]
