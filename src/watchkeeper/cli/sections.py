"""A group of commands whose help lists them in sections, and which knows the nearest name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from watchkeeper.console.defaults import source_of
from watchkeeper.console.suggestion import did_you_mean

Sections = Mapping[str, Sequence[click.Command]]


class SectionedGroup(click.Group):
    """A group that lists its commands under headings, in the order of these.

    A name that no command has is refused together with the nearest one.
    """

    def __init__(self, *, sections: Sections, **settings: Any) -> None:
        super().__init__(**settings)
        self.sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the sections."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section."""
        longest = max(map(len, self.commands))
        limit = formatter.width - 6 - longest
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (str(command.name).ljust(longest), command.get_short_help_str(limit))
                        for command in commands
                    ]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; a UsageError names the nearest where none is."""
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise click.UsageError(
            f"No such command {name!r}.{did_you_mean(name, self.commands)}", ctx
        )


def usage_text(error: click.UsageError, program: str) -> str:
    """Return what is wrong with a command line, and the command whose help to read."""
    command = program if error.ctx is None else error.ctx.command_path
    text = error.format_message()
    if isinstance(error, click.NoSuchOption):
        names = [] if error.ctx is None else option_names(error.ctx.command)
        text = f"No such option {error.option_name!r}.{did_you_mean(error.option_name, names)}"
    if isinstance(error, click.BadParameter) and error.ctx and error.param and error.param.name:
        source = source_of(error.ctx, error.param.name)
        text += f" It is the default in {source}." if source else ""
    return f"{text}\nTry '{command} --help'."


def option_names(command: click.Command) -> list[str]:
    """Return the names of the options of a command, among them `--help`."""
    named = [option for option in command.params if isinstance(option, click.Option)]
    return [
        "--help",
        *(name for option in named for name in (*option.opts, *option.secondary_opts)),
    ]
