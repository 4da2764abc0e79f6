"""A registry on a real ZooKeeper, below a chroot of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient

from tests.support.live_zookeeper import connected, disconnect
from tests.support.registries import Nodes
from watchkeeper.model.registry import paths


class Cluster:
    """A registry below a chroot of its own, written with one session for each member."""

    @staticmethod
    @contextmanager
    def of_test(hosts: str, request: pytest.FixtureRequest) -> Iterator[Cluster]:
        """A registry below a chroot with the name of a test; its sessions end with it."""
        made = Cluster(hosts, f"/{re.sub('[^a-zA-Z0-9_]+', '-', request.node.name)}")
        try:
            yield made
        finally:
            made.end()

    def __init__(self, hosts: str, chroot: str) -> None:
        self.hosts = f"{hosts}{chroot}"
        self.sessions: dict[int, KazooClient] = {}
        root = connected(hosts)
        root.ensure_path(chroot)
        disconnect(root)

    def client(self, session: int) -> KazooClient:
        if session not in self.sessions:
            self.sessions[session] = connected(self.hosts)
        return self.sessions[session]

    def write(self, nodes: Nodes) -> None:
        for path, (data, session) in nodes.items():
            self.client(0).ensure_path(paths.parent_of(path))
            if session:
                self.client(session).create(path, data, ephemeral=True)
            else:
                self.client(0).ensure_path(path)
                self.client(0).set(path, data)

    def end(self, *sessions: int) -> None:
        for session in sessions or list(self.sessions):
            disconnect(self.sessions.pop(session))
