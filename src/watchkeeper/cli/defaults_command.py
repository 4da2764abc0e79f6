"""The command `defaults`: which defaults of options hold here, and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from watchkeeper.console import options
from watchkeeper.console.exit import print_json
from watchkeeper.console.options import example

if TYPE_CHECKING:
    from watchkeeper.console.defaults import Defaults


@click.command(epilog=example("watchkeeper defaults", "watchkeeper defaults --all"))
@click.option("--all", "shows_all", is_flag=True, help="List every option that may have one.")
@options.as_json
@click.pass_obj
def defaults(held: Defaults, shows_all: bool, as_json: bool) -> None:
    """Show the defaults of options that hold here, and where each stands.

    An option on the command line comes first, then its variable, then the nearest
    watchkeeper.toml or [tool.watchkeeper] of a pyproject.toml, then what is built in.
    """
    if as_json:
        print_json(_json(held))
        return
    _show(held)
    if shows_all:
        _show_all()


def _json(held: Defaults) -> dict[str, Any]:
    return {
        "file": str(held.file) if held.file else None,
        "defaults": [
            {
                "command": default.command or None,
                "option": default.key,
                "value": default.shown,
                "from": default.source,
            }
            for default in held.found
        ],
    }


def _show(held: Defaults) -> None:
    from watchkeeper.api.tables import console, plain_table, show_table

    if held.file is None:
        print("no file: no watchkeeper.toml or [tool.watchkeeper] from here upwards")
    else:
        print(f"file      {held.file}")
    if not held.found:
        print("every option has its built-in default")
        return
    table = plain_table("command", "option", "value", "from")
    for default in held.found:
        place = default.source.replace(f"{held.file}", held.file.name) if held.file else ""
        row = (default.command or "all", f"--{default.key}", default.shown)
        table.add_row(*row, place or default.source)
    show_table(table, console())


def _show_all() -> None:
    """List every option that may have a default, with its variable."""
    from watchkeeper.api.tables import console, plain_table, show_table
    from watchkeeper.console.defaults import Shared, options_of, variable_of

    group = click.get_current_context().find_root().command
    assert isinstance(group, click.Group), "the root of every command is the group"
    known = options_of(group)
    rows = {
        (("" if isinstance(option, Shared) else command), key)
        for command, of_command in known.items()
        for key, option in of_command.items()
    }
    table = plain_table("table", "key", "variable")
    for command, key in sorted(rows):
        table.add_row(
            f"[{command.replace(' ', '.')}]" if command else "", key, variable_of(command, key)
        )
    print()
    show_table(table, console())
