"""Scenario files as they look after a slip of the hand: seeded mutations of the shipped ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib.resources import files

from watchkeeper.scenarios import shipped

JUNK = (
    *("", "~", "null", "true", "no", "on", "0", "-1", "5", "99999", "123456789012345678", "1.5"),
    *(
        "5s",
        "-5s",
        "5 s",
        "5sec",
        "99h",
        "200/s",
        "1kB",
        "never",
        "holds",
        "hardened",
        "kafka_07",
    ),
    *("billing/1", "billing/99", "broker/0", "zookeeper/1", "clicks", "[]", "{}", "[1, {a: b}]"),
    *(
        "{at: 1s}",
        "&a [*a]",
        "*x",
        '"',
        "'",
        "é",
        "\t",
        "a: b",
        "- a",
        "!!int x",
        "<<",
        "? x",
        "|",
    ),
    *(
        '"0.7"',
        "0.7",
        '"0.8"',
        "\N{ZERO WIDTH SPACE}",
        "\N{NEXT LINE}",
        '"\\ud800"',
        "reply",
        "new id",
    ),
)


def texts_of_shipped() -> list[str]:
    """What the shipped files say."""
    folder = files("watchkeeper.scenarios") / "files"
    return [(folder / f"{name}.yaml").read_text() for name in shipped()]


def mutant(seed: int, texts: list[str]) -> str:
    """One shipped file with one to three slips in it."""
    chance = random.Random(seed)
    text = chance.choice(texts)
    for _ in range(chance.randint(1, 3)):
        text = chance.choice(SLIPS)(chance, text)
    return text


def delete_line(chance: random.Random, text: str) -> str:
    """A line is gone."""
    lines = text.split("\n")
    del lines[chance.randrange(len(lines))]
    return "\n".join(lines) or "x"


def duplicate_line(chance: random.Random, text: str) -> str:
    """A line stands twice."""
    lines = text.split("\n")
    lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    return "\n".join(lines)


def replace_line(chance: random.Random, text: str) -> str:
    """A line has been overwritten by another."""
    lines = text.split("\n")
    lines[chance.randrange(len(lines))] = chance.choice(lines)
    return "\n".join(lines)


def indent_line(chance: random.Random, text: str) -> str:
    """A line stands further in, or further out."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    lines[at] = (
        chance.choice([" ", "  ", "\t"]) + lines[at] if chance.random() < 0.5 else lines[at][1:]
    )
    return "\n".join(lines)


def swap_characters(chance: random.Random, text: str) -> str:
    """Two neighbouring characters have changed places."""
    at = chance.randrange(max(len(text) - 1, 1))
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def replace_value(chance: random.Random, text: str) -> str:
    """A word has become something else."""
    words = text.replace(",", " ").replace("}", " ").replace("]", " ").split()
    return text.replace(
        chance.choice(words or ["x"]), chance.choice(JUNK), chance.choice([1, 1, -1])
    )


def strike_character(chance: random.Random, text: str) -> str:
    """A character is gone, or a wrong one came in."""
    at = chance.randrange(len(text) + 1)
    wrong = chance.choice(["", *":-{}[]#&*!|>'\"%@`,? \n0s/"])
    return text[:at] + wrong + text[at + 1 :]


SLIPS: tuple[Callable[[random.Random, str], str], ...] = (
    delete_line,
    duplicate_line,
    replace_line,
    indent_line,
    swap_characters,
    replace_value,
    replace_value,
    strike_character,
)
