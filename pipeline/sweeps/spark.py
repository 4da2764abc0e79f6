"""Spark as a runner.

Each call is a job of one task, and a few threads of this process keep a few more of them pending
than there are cores. The alternative is waves: jobs of many tasks. A job costs the JVM about 30
ms of a core where a task of a larger job costs 8 ms, but a wave ends with its last task, and
cores are idle until then; with tasks of more than a second the threads are ahead, and each result
is known, and stored, at once.

Results come back to this process, which alone writes files: workers need no shared folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.pipeline.sweeps.runners import in_flight
from watchkeeper.pipeline.timeouts import what_failed

if TYPE_CHECKING:
    from pyspark import SparkContext

Given = TypeVar("Given")
Made = TypeVar("Made")

AHEAD = 2
"""How many jobs wait while the cores are taken."""


class Spark:
    """Does it on the cores of a cluster, or of a local Spark."""

    name = "spark"

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.workers = 0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._context: SparkContext = self._open.enter_context(session(self.wanted)).sparkContext
        self.workers = self._context.defaultParallelism
        self._threads = ThreadPoolExecutor(self.workers + AHEAD)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            if error is not None:
                self._context.cancelAllJobs()
            self._threads.shutdown(wait=True, cancel_futures=True)

    def each(
        self, work: Callable[[Given], Made], given: Iterable[Given]
    ) -> Iterator[tuple[Given, Made]]:
        """The result of each call, as it arrives."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        def job(task: Given) -> Made:
            made: list[Made] = self._context.parallelize([task], 1).map(work).collect()
            return made[0]

        try:
            yield from in_flight(
                lambda task: self._threads.submit(job, task), given, self.workers + AHEAD
            )
        except (Py4JError, PySparkException) as error:
            raise PipelineProblem(
                f"Spark gave up ({what_failed(str(error))}); what was finished is kept, and the "
                "same command goes on"
            ) from None
