"""The command `virtual`: tests of kazoo code in virtual time."""

from __future__ import annotations

from pathlib import Path

import click

from watchkeeper.console.options import MANY, as_json, example, out, talking


@click.command(
    epilog=example(
        "watchkeeper virtual examples/test_one_at_a_time.py",
        "watchkeeper virtual examples/test_one_at_a_time.py::test_one_at_a_time --policy pct:3",
    )
)
@click.argument("target", metavar="FILE[::TEST]", required=False)
@click.option(
    "--seeds", metavar="N|A..B", help="How many seeds, or which.  [default: those of the test]"
)
@click.option(
    "--policy",
    metavar="random|pct:DEPTH|delay:BOUND|fifo",
    help="Which thread runs next.  [default: that of the test]",
)
@click.option("--jobs", type=MANY, default=1, show_default=True, help="Processes that run seeds.")
@click.option(
    "--master",
    metavar="MASTER",
    help="Run the seeds on Spark: local[2], spark://HOST:PORT, yarn or k8s://...",
)
@click.option("--keep-going", is_flag=True, help="Run all seeds, also after one that fails.")
@click.option(
    "--check-determinism", is_flag=True, help="Run each seed twice and compare the two runs."
)
@click.option(
    "--replay",
    "replay_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Run a failing run again, from its replay.json.",
)
@out
@talking
@as_json
def virtual(
    target: str | None,
    seeds: str | None,
    policy: str | None,
    jobs: int,
    master: str | None,
    keep_going: bool,
    check_determinism: bool,
    replay_file: Path | None,
    out: Path,
    as_json: bool,
) -> int:
    """Run tests of ordinary kazoo code in virtual time.

    FILE has tests that `watchkeeper.virtual.simulated` decorates. Each runs with many seeds,
    which draw its faults and the order of its threads. A run that violates a property is made
    smaller and written to a folder of --out.

    \b
    Exit codes: 0 holds; 1 violated; 2 unknown; 3 not deterministic; 4 usage or environment.
    """
    from watchkeeper.check import virtual_campaign
    from watchkeeper.console.extras import check_installed, needing

    with needing("virtual time"):
        import greenlet  # noqa: F401
        import kazoo  # noqa: F401
    if master is not None:
        check_installed("a run on Spark", "pyspark")
    if replay_file is not None:
        return virtual_campaign.replay(replay_file, out, as_json=as_json)
    return virtual_campaign.run(
        target,
        virtual_campaign.Wish(
            seeds=seeds,
            policy=policy,
            jobs=jobs,
            master=master,
            keeps_going=keep_going,
            checks_determinism=check_determinism,
            out=out,
        ),
        as_json=as_json,
    )
