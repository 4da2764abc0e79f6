"""Commands that need a live ZooKeeper and have many options; `cli` registers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def register(app: click.Group, auth: Decorator, ca: Decorator, as_json: Decorator) -> None:
    """Add the commands of this module."""
    app.command()(as_json(ca(auth(calibrate))))


@click.argument("hosts", required=False)
@click.option(
    "--servers",
    default="1",
    show_default=True,
    type=click.Choice(["1", "3"]),
    help="Of the embedded ZooKeeper.",
)
@click.option(
    "--out",
    default="profile.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The profile file to write.",
)
@click.option("--quick", is_flag=True, help="Measure less, in about 5 s instead of 30.")
def calibrate(hosts: str | None, as_json: bool, **options: Any) -> None:
    """Measure a real ZooKeeper, for `run --profile` to simulate.

    Without HOSTS[/chroot] it is an embedded one that is started for it. What is written
    to it stands below a znode of its own, and goes with that when all is measured.
    """
    from watchkeeper import calibrating

    calibrating.run(hosts, as_json=as_json, **options)
