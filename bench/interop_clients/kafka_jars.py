"""Kafka 0.8.2.2 and what it needs, from Maven Central, and the Java that runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench.interop_clients.outcome import Skipped

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

VERSION = "0.8.2.2"
KAFKA = f"kafka_2.11-{VERSION}.jar"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FETCH_WITHIN_S = 300.0
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>interop</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.11</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId>
<version>1.7.6</version></dependency>
</dependencies></project>
"""
LOG4J = """log4j.rootLogger=ERROR, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%p %m%n
"""
OPENED = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.nio", "sun.nio.ch", "java.lang", "java.util")
)
"""What a program of 2015 needs on a Java of today."""
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
SPEED = ("-Xmx1g",)
"""With every compiler, and the memory that Kafka's script gives to a broker."""


def default_folder() -> Path:
    """Where jars are kept from one run to the next."""
    cache_folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache_folder) / "watchkeeper" / f"kafka-{VERSION}"


@cache
def java_command(folder: Path, options: tuple[str, ...] = QUICK_START) -> tuple[str, ...]:
    """The command that runs a class of Kafka; raises Skipped if Java or the jars are missing."""
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        raise Skipped(str(problem)) from None
    if not (folder / KAFKA).exists():
        _fetch(folder)
    (folder / "log4j.properties").write_text(LOG4J)
    return (str(java), *options, *OPENED, "-cp", f"{folder}:{folder}/*")


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Skipped(f"there is no Maven on PATH to fetch Kafka {VERSION} into {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(POM)
    done = subprocess.run(
        [maven, "-q", "-B", PLUGIN, f"-DoutputDirectory={folder}", "-DincludeScope=runtime"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=FETCH_WITHIN_S,
    )
    if done.returncode or not (folder / KAFKA).exists():
        raise Skipped(f"Maven could not fetch Kafka {VERSION}: {done.stdout[-200:]}")
