"""Ships this package to the workers of Spark, so that it need not be installed on them.

The modules that workers run are packed into a zip file that Spark sends to every worker, and that
is found before any installed package: all run the code of the driver. The libraries it imports
hold compiled parts and cannot be shipped; each worker names the missing ones before the work
starts.
"""

from __future__ import annotations

import hashlib
import py_compile
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import watchkeeper

PACKAGES = ("model", "sim", "pipeline", "virtual")
"""The subpackages of `watchkeeper` that workers import."""
ENTRANCE = ("__init__.py", "console/__init__.py", "console/extras.py")
"""The modules that importing `watchkeeper` itself needs."""
LIBRARIES = ("msgspec", "immutables", "simpy", "cramjam", "numpy")
"""The libraries that these import, but for those of virtual time."""
OF_VIRTUAL = ("greenlet", "kazoo")
"""The libraries that tests in virtual time import besides."""
PIPELINE, VIRTUAL = "watchkeeper/pipeline/", "watchkeeper/virtual/"
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def sources() -> Iterator[tuple[str, Path]]:
    """The modules that workers run: the name in the zip file, and where the source is."""
    home = Path(watchkeeper.__file__).parent
    inner = (path for package in PACKAGES for path in sorted((home / package).rglob("*.py")))
    for path in (*(home / name for name in ENTRANCE), *inner):
        yield f"watchkeeper/{path.relative_to(home).as_posix()}", path


def code_digest() -> str:
    """The SHA-256 of all code that a run of a scenario depends on."""
    digest = hashlib.sha256()
    for name, path in sources():
        if not name.startswith((PIPELINE, VIRTUAL)) or name == f"{PIPELINE}sweeps/chunk.py":
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def packed(folder: Path) -> Path:
    """The zip file, in this folder.

    It holds the modules compiled, or every worker would compile them for itself.
    """
    archive = folder / f"watchkeeper-{code_digest()[:12]}.zip"
    compiled = folder / "module.pyc"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, path in sources():
            py_compile.compile(
                str(path),
                str(compiled),
                dfile=name,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
            file.writestr(zipfile.ZipInfo(f"{name}c", _EARLIEST), compiled.read_bytes())
    compiled.unlink()
    return archive


def lacking(more: Iterable[str] = ()) -> list[str]:
    """The libraries that this interpreter lacks, of ours and more; called on each worker."""
    return [
        name
        for name in (*LIBRARIES, *more)
        if name not in sys.modules and find_spec(name) is None
    ]
