"""An environment of a newcomer: a fresh one of Python, a folder, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
EXTRAS = "pytest,arrow"
LONGEST_S = 600
KEPT = ("HOME", "LANG", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        """Both outputs."""
        return self.out + self.err

    @property
    def sentence(self) -> str:
        """The last line on standard error that says something; else the last one at all."""
        lines = [line for line in (self.err or self.out).splitlines() if line.strip()]
        told = [line for line in lines if not line.startswith("Try '")]
        return told[-1].strip() if told else ""


@dataclass(slots=True)
class Environment:
    """Where a newcomer works."""

    folder: Path
    """The working directory of every command."""
    bin: Path
    """The folder of the commands."""
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def fresh(cls, folder: Path) -> Environment:
        """Make an environment of Python in which nothing is installed yet."""
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        return cls.in_folder(folder, folder / "venv" / "bin")

    @classmethod
    def in_folder(cls, folder: Path, commands: Path) -> Environment:
        """Use commands that are installed already."""
        work = folder / "work"
        work.mkdir(parents=True)
        return cls(work, commands)

    def install(self) -> Done:
        """Install this checkout with the extras that need neither Spark nor Java."""
        return self.run("python", "-m", "pip", "install", "-q", f"{CHECKOUT}[{EXTRAS}]")

    def run(self, *words: str, given: str = "", variables: dict[str, str] | None = None) -> Done:
        """Run a command, and wait for its end."""
        began = time.monotonic()
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environ(variables),
            input=given,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *words: str) -> list[str]:
        """Return the words of a command, with the path of its program."""
        return [str(self.bin / words[0]), *words[1:]]

    def environ(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Return the variables of a command: few, so that nothing of this session helps."""
        kept = {
            name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ
        }
        path = f"{self.bin}:{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
        mirrors = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        return {**kept, **mirrors, "PATH": path, "BROWSER": "true", **(more or {})}
