"""The entry point of a process of a live run: one member, or several with a session each.

    python -m watchkeeper.real.member.main

The job of the first member is the first line of its standard input; an order `job` brings
another one. The process ends when its only program ends, on command, or when its parent is gone,
which closes its standard input.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from threading import Thread
from typing import Any

import msgspec

from watchkeeper.model.actor.program import Ended
from watchkeeper.real.member import (
    broker_process,
    consumer_process,
    producer_process,
    replica_process,
    writer_process,
)
from watchkeeper.real.member.context import MemberContext, report
from watchkeeper.real.member.job import (
    BrokerRole,
    ConsumerRole,
    Job,
    ProducerRole,
    ReplicaRole,
    WriterRole,
    decoded,
)
from watchkeeper.real.member.rate_fetcher import RateFetcher
from watchkeeper.real.member.rate_server import RateServer
from watchkeeper.real.process.driver import Driver
from watchkeeper.real.supervise.child_process import end_with_parent


def main() -> None:
    """Report that the imports are done, run the job, and pass orders on to the members."""
    end_with_parent()
    report(ready=os.getpid())
    members: dict[str, MemberContext] = {}
    begin(members, decoded(sys.stdin.buffer.readline()))
    for line in sys.stdin.buffer:
        message = msgspec.json.decode(line)
        if "job" in message:
            begin(members, decoded(message["job"]))
        else:
            members[message.pop("node")].channel.handle(message)
    os._exit(0)


def begin(members: dict[str, MemberContext], job: Job) -> None:
    """Run a member in a thread of its own."""
    context = members[job.node] = MemberContext(job)
    Thread(target=run, args=[context], name=job.node, daemon=True).start()


def run(context: MemberContext) -> None:
    """Run a member until its program ends; an error ends the process, with all members in it."""
    try:
        ended = ROLES[type(context.job.role)](context)
        assert context.client is not None, "a program that is over has had a client"
        slowest_us = context.client.slowest_ns // 1000
        context.report(ended=ended.reason, failed=ended.failed, slowest_us=slowest_us)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    if not context.job.shares_process:
        os._exit(0)


def run_without_messages(context: MemberContext) -> Ended:
    """Run a program in a run without messages, where a log is a rate."""
    job, writer = context.job, context.writer
    fetcher = None
    if job.fetch_every_s:
        fetcher = RateFetcher(
            writer,
            context.cluster,
            job.fetch_every_s,
            lambda: context.session,
            ends_on_error=job.ends_on_error,
        )
    if job.port:
        RateServer(job.port, job.program.me, context.cluster, writer.t_us)
    driver = Driver(job.program, writer, context.connect, fetcher, context.channel, job.skew_ms)
    context.listen(driver)
    return driver.run()


ROLES: dict[type[Any], Callable[[MemberContext], Ended]] = {
    type(None): run_without_messages,
    BrokerRole: broker_process.run,
    ConsumerRole: consumer_process.run,
    ProducerRole: producer_process.run,
    ReplicaRole: replica_process.run,
    WriterRole: writer_process.run,
}
"""Class of the role -> the function that runs the process."""


if __name__ == "__main__":
    main()
