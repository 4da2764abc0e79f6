"""A member inside an application that reads messages by a connector."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from model.clients.connector import Connector
from real.companions import Companion
from real.fetcher import Fetcher


class ReadingMember(Companion):
    """The member of a connector; it is ready after its first rebalance."""

    not_ready = "has had no rebalance"

    def __init__(
        self,
        connector: Connector,
        hosts: str,
        *,
        logger: logging.Logger,
        kazoo: Mapping[str, Any] | None,
    ) -> None:
        me = connector.me
        super().__init__(
            connector.program,
            hosts,
            name=me.node,
            logger=logger,
            session_timeout_ms=me.settings.session_timeout_ms,
            kazoo=kazoo,
        )
        self.fetcher = Fetcher(connector, self.driver)
        self.fetching = self.driver.fetching = self.fetcher

    def _saw(self, ask: Any, answer: Any) -> None:
        """An answer of ZooKeeper's does not make it ready; a rebalance does."""

    def _hear(self, kind: str) -> None:
        if kind == "rebalance ends":
            self._is_ready.set()
