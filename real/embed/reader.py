"""A member inside an application that reads messages through a connector."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.embed.task_member import TaskMember
from watchkeeper.real.process.stream_fetcher import StreamFetcher


class ReadingMember(TaskMember):
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
            resends_watches=me.variant.client_resends_watches,
        )
        self.fetcher = StreamFetcher(connector, self.driver)
        self.fetching = self.driver.fetching = self.fetcher

    def _saw(self, effect: Any, answer: Any) -> None:
        """Ignore a response of ZooKeeper: only a rebalance makes this member ready."""

    def _hear(self, kind: str) -> None:
        if kind == EventKind.REBALANCE_COMPLETED:
            self._is_ready.set()
