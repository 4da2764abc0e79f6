"""Defaults of options: from variables of the environment, and from a file of the project.

An option on the command line comes first, then its variable, then the file, then what is built
in. The file is `watchkeeper.toml`, or the table `[tool.watchkeeper]` of `pyproject.toml`: the
nearest one from the working directory upwards. A key is the name of an option; at the top level
it is one that means the same in several commands, in a table `[run]` any option of that command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.progress import VARIABLE as PROGRESS

FILE, PYPROJECT = "watchkeeper.toml", "pyproject.toml"
TABLE = ("tool", "watchkeeper")
PREFIX = "WATCHKEEPER_"
NOT_OPTIONS = (PROGRESS, "WATCHKEEPER_TRACEBACK", "WATCHKEEPER_SEEDS")
"""Variables of watchkeeper that are no defaults of options."""
LIKENESS = 0.75
"""How much a variable resembles one of watchkeeper before it is taken for a mistyped one."""
NEVER = ("help", "version", "json")
"""Options of a single call."""
SECRET = "auth"


class Shared(click.Option):
    """An option that means the same in several commands, so that it has one default for all."""


@dataclass(frozen=True, slots=True)
class Default:
    """A default that the user has set."""

    command: str
    """Empty for all commands that have the option."""
    key: str
    value: Any
    source: str
    """The variable, or the file and the table."""

    @property
    def shown(self) -> str:
        """The value as text; of a credential only its scheme."""
        values = self.value if isinstance(self.value, list | tuple) else [self.value]
        if self.key == SECRET:
            values = [f"{str(value).partition(':')[0]}:..." for value in values]
        return ", ".join(_text(value) for value in values)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class Defaults:
    """All defaults that the user has set."""

    file: Path | None
    found: list[Default] = field(default_factory=list)
    of_commands: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Command -> parameter -> value, as click takes them."""
    sources: dict[tuple[str, str], str] = field(default_factory=dict)
    """Command and parameter -> where its default stands."""


Options = Mapping[str, Mapping[str, click.Option]]
"""Command -> key -> option."""


def options_of(group: click.Group) -> Options:
    """Return the options of each command that may have a default, by their keys.

    A command of a command has both names, as `topics create`.
    """
    found: dict[str, dict[str, click.Option]] = {}
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            of_group = options_of(command)
            found |= {f"{name} {inner}": dict(known) for inner, known in of_group.items()}
        else:
            found[name] = {key_of(option): option for option in _configurable(command)}
    return found


def _configurable(command: click.Command) -> Iterator[click.Option]:
    for option in command.params:
        if isinstance(option, click.Option) and key_of(option) not in NEVER:
            yield option


def key_of(option: click.Option) -> str:
    """Return the name of an option without its dashes."""
    return max(option.opts, key=len).lstrip("-")


# --- reading ---------------------------------------------------------------------------


def defaults(group: click.Group, here: Path, environment: Mapping[str, str]) -> Defaults:
    """Return the defaults that hold in a folder; raise Stop for what is no option."""
    options = options_of(group)
    file, table = _file(here)
    found = Defaults(file)
    if file is not None:
        for default in _in_file(options, file, table):
            _add(found, options, default)
    for default in _in_environment(options, environment):
        _add(found, options, default)
    return found


def _add(found: Defaults, options: Options, default: Default) -> None:
    """Add a default; one of a command comes before one of all commands in the same place."""
    found.found.append(default)
    for command, known in options.items():
        option = known.get(default.key)
        applies = default.command == command or (
            not default.command and isinstance(option, Shared)
        )
        if option is not None and option.name is not None and applies:
            held = found.of_commands
            for word in command.split():
                held = held.setdefault(word, {})
            held[option.name] = default.value
            found.sources[command, option.name] = default.source


def _file(here: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest file with defaults, and its table."""
    for folder in (here, *here.parents):
        own, project = folder / FILE, folder / PYPROJECT
        tables = {file: _table(file) for file in (own, project) if file.is_file()}
        with_defaults = {file: table for file, table in tables.items() if table is not None}
        if len(with_defaults) == 2:
            raise Stop(
                USAGE,
                f"{own} and [tool.watchkeeper] in {project} are both there; keep one of them",
            )
        for file, table in with_defaults.items():
            return file, table
    return None, {}


def _table(file: Path) -> dict[str, Any] | None:
    """Return the table of a file; None for a project without one."""
    try:
        text = file.read_bytes().decode()
        if file.name == PYPROJECT and ".".join(TABLE) not in text:
            return None
        import tomllib

        table: Any = tomllib.loads(text)
    except (OSError, ValueError) as error:
        if file.name == PYPROJECT:  # its own tools say what is wrong with it
            return None
        raise Stop(USAGE, f"{file} cannot be read: {error}") from None
    for name in TABLE if file.name == PYPROJECT else ():
        table = table.get(name)
        if table is None:
            return None
    if not isinstance(table, dict):
        raise Stop(USAGE, f"{file}: [tool.watchkeeper] is no table")
    return table


def _in_file(options: Options, file: Path, table: dict[str, Any]) -> Iterator[Default]:
    shared = _shared(options)
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _in_table(options, file, key, value)
        elif key in shared:
            yield Default("", key, _value(file, key, value, shared[key]), str(file))
        else:
            raise Stop(USAGE, f"{file}: {_no_key(key, options, shared)}")


def _in_table(
    options: Options, file: Path, command: str, table: dict[str, Any]
) -> Iterator[Default]:
    """Yield the defaults of one command; `[topics.create]` is a table of `topics create`."""
    name = command.replace(" ", ".")
    if command not in options and not any(one.startswith(f"{command} ") for one in options):
        raise Stop(USAGE, f"{file}: [{name}] is no command{_nearest(command, options)}")
    known = options.get(command, {})
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _in_table(options, file, f"{command} {key}", value)
        elif key not in known:
            raise Stop(
                USAGE, f"{file}: {key!r} is no option of `{command}`{_nearest(key, known)}"
            )
        else:
            given = _value(file, key, value, known[key])
            yield Default(command, key, given, f"{file} [{name}]")


def _no_key(key: str, options: Options, shared: Mapping[str, click.Option]) -> str:
    """Return what is wrong with a key at the top level of a file."""
    commands = [name for name, known in options.items() if key in known]
    if commands:
        tables = " or ".join(f"[{name.replace(' ', '.')}]" for name in commands[:3])
        return f"{key!r} is an option of single commands; write it in a table, as {tables}"
    return f"{key!r} is no option{_nearest(key, (*shared, *options))}"


def _value(file: Path, key: str, value: Any, option: click.Option) -> Any:
    """Return the value of a key; Stop where it is of another kind than its option.

    A path is one from the folder of the file.
    """
    is_many = isinstance(value, list)
    if is_many and not option.multiple:
        raise Stop(USAGE, f"{file}: {key!r} has one value, and here is a list")
    values = value if is_many else [value]
    for each in values:
        if not isinstance(each, str | int | float):
            raise Stop(USAGE, f"{file}: {key!r} is {each!r}; expected a text or a number")
        if option.is_flag and not isinstance(each, bool):
            raise Stop(USAGE, f"{file}: {key!r} is {each!r}; expected true or false")
    if isinstance(option.type, click.Path):
        values = [os.path.relpath(file.parent / str(each)) for each in values]
    elif not option.is_flag:
        values = [str(each) for each in values]
    return values if option.multiple else values[0]


def _in_environment(options: Options, environment: Mapping[str, str]) -> Iterator[Default]:
    names = _variables(options)
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in NOT_OPTIONS:
            continue
        if variable not in names:
            _refuse_mistyped(variable, names)
            continue
        command, key, option = names[variable]
        value: Any = text.split() if option.multiple else text
        yield Default(command, key, value, variable)


def _refuse_mistyped(variable: str, names: Mapping[str, Any]) -> None:
    """Raise Stop for a variable that is nearly one of watchkeeper's own."""
    known = [name.removeprefix(PREFIX) for name in (*names, *NOT_OPTIONS)]
    near = get_close_matches(variable.removeprefix(PREFIX), known, n=1, cutoff=LIKENESS)
    if near:
        raise Stop(
            USAGE, f"{variable} is no variable of watchkeeper; did you mean {PREFIX}{near[0]}?"
        )


def _variables(options: Options) -> dict[str, tuple[str, str, click.Option]]:
    """Return variable -> the command, empty for all, the key and the option; all first."""
    shared = {variable_of("", key): ("", key, option) for key, option in _shared(options).items()}
    own = {
        variable_of(command, key): (command, key, option)
        for command, known in options.items()
        for key, option in known.items()
    }
    return {**own, **shared}


def variable_of(command: str, key: str) -> str:
    """Return the variable for an option of a command, or of all commands."""
    words = [command, key] if command else [key]
    return PREFIX + "_".join(words).replace("-", "_").replace(" ", "_").upper()


def _shared(options: Options) -> dict[str, click.Option]:
    return {
        key: option
        for known in options.values()
        for key, option in known.items()
        if isinstance(option, Shared)
    }


def _nearest(word: str, words: Any) -> str:
    near = get_close_matches(word, list(words), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


# --- in a command ----------------------------------------------------------------------


def source_of(context: click.Context, parameter: str) -> str:
    """Return where the default of a parameter stands; empty where it was given or built in."""
    if context.get_parameter_source(parameter) is not ParameterSource.DEFAULT_MAP:
        return ""
    held = context.find_root().obj
    command = context.command_path.partition(" ")[2]
    return held.sources.get((command, parameter), "") if held else ""


def is_default(parameter: str) -> bool:
    """Return whether the value of a parameter is a default that the user has set."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(source_of(context, parameter))


def without_defaults(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return values of a command without defaults of the user, which do not apply here.

    `names` are the parameters that do not apply; of a flag the value is False, else None or
    an empty tuple.
    """
    empty: dict[type, Any] = {bool: False, tuple: ()}
    return {
        name: empty.get(type(value)) if name in names and is_default(name) else value
        for name, value in values.items()
    }
