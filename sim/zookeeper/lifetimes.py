"""The leader's periodic look at containers and TTLs.

The timer runs only while there are znodes with a lifetime. It goes off at full minutes of the
run: a look that falls into an election is missed, as at a real ensemble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchkeeper.model.zookeeper.lifetimes import due_by_ttl, due_containers
from watchkeeper.model.zookeeper.tree import Tree

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.ensemble import Ensemble

CHECK_US = 60_000_000
"""How often ZooKeeper's servers look by default."""


class LifetimeTimer:
    """Has the leader delete what is due."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self._is_waiting = False

    def wait(self, tree: Tree) -> None:
        """Look at the next full minute, if a znode of this tree has a lifetime."""
        if self._is_waiting or not tree.limited:
            return
        self._is_waiting = True
        kernel = self.ensemble.kernel
        kernel.at((kernel.now_us // CHECK_US + 1) * CHECK_US, self._look, None)

    def _look(self, _: None) -> None:
        self._is_waiting = False
        ensemble = self.ensemble
        tree, leader = ensemble.head, ensemble.leader
        if leader is not None and not leader.is_paused:
            for path in (*due_containers(tree), *due_by_ttl(tree, ensemble.now_ms())):
                ensemble.delete_container(path, leader)
        self.wait(ensemble.head)
