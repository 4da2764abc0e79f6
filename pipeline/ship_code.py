"""Gives the workers of Spark this project, so that it need not be installed on them.

What they run is packed into a zip file that Spark hands to every worker, and that is found
before anything installed there: all run the code of whoever started them. The libraries it
imports hold compiled parts and cannot be sent so; what a worker lacks of them is asked
before any work is done.
"""

from __future__ import annotations

import hashlib
import py_compile
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("model", "sim", "pipeline")
"""What workers import of this project."""
LIBRARIES = ("msgspec", "immutables", "simpy", "cramjam", "numpy")
"""What these import in turn."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def sources() -> Iterator[tuple[str, Path]]:
    """The modules that workers run: the name in the zip file, and where the source is."""
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, f"{package} is a part of the project"
        home = Path(spec.origin or "").parent
        for path in sorted(home.rglob("*.py")):
            yield f"{package}/{path.relative_to(home).as_posix()}", path


def code_digest() -> str:
    """What tells this code from another one: the SHA-256 of all that a run depends on."""
    digest = hashlib.sha256()
    for name, path in sources():
        if not name.startswith("pipeline/") or name == "pipeline/sweeps/work.py":
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


def lacking(_: object = None) -> list[str]:
    """What this interpreter lacks of what workers import; asked of each worker."""
    return [name for name in LIBRARIES if name not in sys.modules and find_spec(name) is None]
