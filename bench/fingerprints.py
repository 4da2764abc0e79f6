"""The same scenario and seed give one fingerprint: on every Python, under every hash seed.

    python bench/fingerprints.py [--pythons 3.11,3.12,3.13] [--hash-seeds 0,1,4242,random]
    python bench/fingerprints.py --prepare     only make the environments
    python bench/fingerprints.py --list        the interpreters that are ready, as JSON

Interpreters are looked for on the PATH, among pyenv's versions and among uv's. Each that
is found gets a virtual environment in the cache folder, with the dependencies that
pyproject.toml names; it is kept for the next time, until those change. A version that is
not installed, or whose packages cannot be had, is said to be missing and not compared.

Exit code 0: all fingerprints agree. 1: some differ. 2: there was nothing to compare with.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, parser_of, table

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = "3.11,3.12,3.13"
HASH_SEEDS = "0,1,4242,random"
SCENARIOS = (
    "connection-loss-mid-claim,consumer-crash,gc-pause-zombie,mass-start-herd,"
    "network-partition-one-way,new-topic-filter,rolling-upgrade,zookeeper-rolling-restart"
)
VARIANTS = "hardened,kafka_07,kafka_08,documented"

PROBE = """
import json, sys
from watchkeeper.scenarios import ScenarioError, load
from watchkeeper import simulate
for name, variant, seed in json.load(sys.stdin):
    scenario = load(name)
    try:
        print(simulate(scenario, seed=seed, variant=variant).fingerprint)
    except ScenarioError:
        print("refused")
"""
"""What every interpreter runs: a line a run. A variant may refuse a scenario's layout."""

WHO = "import platform, sys; print(platform.python_version(), sys.executable)"

Run = tuple[str, str, int]
"""A scenario, a variant and a seed."""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter that can run the project."""

    version: str
    path: str


# --- finding interpreters --------------------------------------------------------------


def default_cache() -> Path:
    """Where environments are kept unless another folder is named."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "watchkeeper" / "pythons"


def candidates(minor: str) -> Iterator[Path]:
    """Where an interpreter of a version (`3.12`) may be found, the likeliest first."""
    for folder in os.get_exec_path():
        yield Path(folder) / f"python{minor}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    for installed in (pyenv / "versions", uv):
        names = (f"{minor}.*", f"cpython-{minor}.*")
        for found in sorted(path for name in names for path in installed.glob(name)):
            yield found / "bin" / f"python{minor}"


def interpreter(minor: str) -> Python | None:
    """The first interpreter of this version that runs, or None."""
    here = Python(platform.python_version(), sys.executable)
    if here.version.startswith(f"{minor}."):
        return here
    for path in candidates(minor):
        if path.is_file():
            found = ask_who(str(path))
            if found is not None and found.version.startswith(f"{minor}."):
                return found
    return None


def ask_who(path: str) -> Python | None:
    """What an interpreter says it is; None for one that does not run."""
    done = subprocess.run([path, "-c", WHO], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None  # a shim of pyenv for a version that is not switched on, for one
    version, _, real = done.stdout.strip().partition(" ")
    return Python(version, real)


# --- environments ----------------------------------------------------------------------


def dependencies() -> list[str]:
    """What pyproject.toml says the project needs to run."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed: list[str] = tomllib.load(file)["project"]["dependencies"]
    return needed


def environment_of(version: str, cache: Path) -> Path:
    """The folder of a version's environment; another one when the dependencies change."""
    digest = hashlib.sha256("\n".join(dependencies()).encode()).hexdigest()[:12]
    return cache / f"{version}-{digest}"


def ready(version: str, cache: Path) -> Python | None:
    """The interpreter of an environment that is complete."""
    folder = environment_of(version, cache)
    python = folder / "bin" / "python"
    return Python(version, str(python)) if (folder / "complete").exists() else None


def prepare(found: Python, cache: Path) -> Python | str:
    """An interpreter with the packages, made if it is not there; or why there is none."""
    if found.path == sys.executable:
        return found
    there = ready(found.version, cache)
    if there is not None:
        return there
    folder = environment_of(found.version, cache)
    print(f"making an environment for Python {found.version} in {folder}", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", *dependencies()]
    for command in ([found.path, "-m", "venv", "--clear", str(folder)], pip):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return lines[-1] if lines else f"{command[0]} failed"
    (folder / "complete").touch()
    return Python(found.version, pip[0])


def pythons(minors: Sequence[str], cache: Path) -> tuple[list[Python], list[str]]:
    """An interpreter of each version, with the packages; and why others are missing."""
    usable: list[Python] = []
    missing: list[str] = []
    for minor in minors:
        found = interpreter(minor)
        if found is None:
            missing.append(f"Python {minor} is not installed here")
            continue
        prepared = prepare(found, cache)
        if isinstance(prepared, Python):
            usable.append(prepared)
        else:
            missing.append(f"Python {found.version} lacks the packages: {prepared}")
    return usable, missing


def already_there(minors: Sequence[str], cache: Path) -> dict[str, str]:
    """Version -> interpreter, of those that need nothing more to be made."""
    there: dict[str, str] = {}
    for minor in minors:
        found = interpreter(minor)
        if found is not None:
            usable = found if found.path == sys.executable else ready(found.version, cache)
            if usable is not None:
                there[minor] = usable.path
    return there


# --- fingerprints ----------------------------------------------------------------------


def fingerprints(python: Python, hash_seed: str, runs: list[Run]) -> list[str]:
    """The fingerprint of every run, in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [python.path, "-c", PROBE],
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"Python {python.version} failed:\n{done.stderr}")
    return done.stdout.split()


def compare(
    usable: list[Python], missing: list[str], hash_seeds: Sequence[str], runs: list[Run]
) -> tuple[Report, int]:
    """Compare every run in every interpreter under every hash seed; how many differ."""
    settings = list(product(usable, hash_seeds))
    prints = [fingerprints(python, hash_seed, runs) for python, hash_seed in settings]
    report = Report(
        f"One fingerprint: {len(runs)} runs, {len(usable)} Pythons, {len(hash_seeds)} hash seeds",
        ("Python", "PYTHONHASHSEED", "runs", "differ from the first"),
    )
    wrong: list[list[str]] = []
    for (python, hash_seed), found in zip(settings, prints, strict=True):
        different = [at for at, fingerprint in enumerate(found) if fingerprint != prints[0][at]]
        refused = found.count("refused")
        report.rows.append(
            [python.version, hash_seed, str(len(found) - refused), str(len(different))]
        )
        wrong += [[python.version, hash_seed, *map(str, runs[at])] for at in different]
    verdict = "NOT MET" if wrong else "met"
    report.notes = [f"bar: one fingerprint everywhere: {verdict}", *missing]
    if wrong:
        columns = ("Python", "PYTHONHASHSEED", "scenario", "variant", "seed")
        report.notes += ["", *table(columns, wrong[:40])]
    report.data = {
        "pythons": [python.version for python in usable],
        "missing": missing,
        "different": wrong,
        "fingerprints": {"/".join(map(str, run)): prints[0][at] for at, run in enumerate(runs)},
    }
    return report, len(wrong)


def arguments_of(arguments: Sequence[str] | None) -> Namespace:
    """The options."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--pythons", default=VERSIONS, help=f"versions ({VERSIONS})")
    parser.add_argument("--hash-seeds", default=HASH_SEEDS, help=f"each ({HASH_SEEDS})")
    parser.add_argument("--scenarios", default=SCENARIOS, help=f"which ({SCENARIOS})")
    parser.add_argument("--variants", default=VARIANTS, help=f"of each ({VARIANTS})")
    parser.add_argument("--seeds", type=int, default=2, help="of each, from 0 (2)")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="of environments")
    parser.add_argument("--prepare", action="store_true", help="only make the environments")
    parser.add_argument("--list", action="store_true", help="print what is ready, as JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print."""
    options = arguments_of(arguments)
    minors = options.pythons.split(",")
    if options.list:
        print(json.dumps(already_there(minors, options.cache)))
        return 0
    usable, missing = pythons(minors, options.cache)
    if options.prepare:
        rows = [[python.version, python.path] for python in usable]
        print("\n".join([*table(("Python", "interpreter"), rows), *missing]))
        return 0
    runs: list[Run] = list(
        product(options.scenarios.split(","), options.variants.split(","), range(options.seeds))
    )
    hash_seeds = options.hash_seeds.split(",")
    if len(usable) * len(hash_seeds) < 2:
        print("\n".join(["there is nothing to compare with", *missing]), file=sys.stderr)
        return 2
    report, wrong = compare(usable, missing, hash_seeds, runs)
    report.show(as_json=options.json)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
