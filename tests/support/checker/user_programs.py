"""Small programs to be explored, and the examples of the page about that."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tests import HOME
from tests.support.pages.markdown import blocks

PAGE = HOME / "docs/how-to/explore-your-own.md"


def example(name: str, folder: Path) -> ModuleType:
    """A program of the page, as a reader has it."""
    (block,) = [block for block in blocks(PAGE.read_text()) if block.file == f"{name}.py"]
    return module_of(name, block.text, folder)


def module_of(name: str, text: str, folder: Path) -> ModuleType:
    """Import a module from its text, by a file of its own."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = spec_from_file_location(f"{folder.name}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module  # type: ignore[no-any-return]
