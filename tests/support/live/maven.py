"""Programs of other versions, which Maven fetches where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>other</groupId><artifactId>other</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</dependency>"""
CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:build-classpath"


def classpath_of(artifacts: Iterable[str], folder: Path) -> str:
    """Have Maven fetch artifacts (`group:name:version`); skip where it cannot."""
    names = tuple(artifacts)
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"Maven is not installed, and it fetches {names[0]}")
    dependencies = "".join(DEPENDENCY.format(*name.split(":")) for name in names)
    (folder / "pom.xml").write_text(POM.format(dependencies=dependencies))
    output = folder / "classpath"
    command = [maven, "-q", "-B", CLASSPATH, f"-Dmdep.outputFile={output}"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"Maven does not fetch {names[0]}: {done.stdout[-300:]}")
    return output.read_text()
