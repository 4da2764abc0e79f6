"""What each process of a live run is told when it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from model.administrator import Administrator, administrator
from model.plan import BrokerPlan, ConsumerPlan, GroupPlan, ProducerPlan, balancer
from model.program import Program
from model.programs import (
    PRODUCER_TIMEOUT_MS,
    broker_program,
    consumer_program,
    producer_program,
)
from real.clusters import Cluster
from real.job import Consumes, Job, Sends
from real.member_results import STORES

if TYPE_CHECKING:
    from real.world import World


class Jobs:
    """Makes the jobs of a run."""

    STORES = STORES

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder

    def of(self, name: str, *, new_id: bool) -> Job:
        """The job of a consumer, a broker or a producer."""
        world = self.world
        if name in world.consumers:
            return self._consumer(*world.consumers[name], new_id=new_id)
        if name in world.producers.plans:
            return self._producer(world.producers.plans[name])
        return self._broker(*world.brokers[name])

    def _consumer(self, group: GroupPlan, plan: ConsumerPlan, *, new_id: bool) -> Job:
        cluster = self.world.clusters[group.cluster]
        program = consumer_program(
            cluster.plan, group.name, plan, life=self.world.lives[plan.node], new_id=new_id
        )
        job = replace(
            self._job(cluster, plan.node, program, plan.settings.session_timeout_ms),
            group=group.name,
            about={"variant": plan.variant.name},
        )
        if cluster.sites is not None:
            return replace(job, part=self._consumes(cluster, group, plan, program))
        return replace(
            job,
            fetch_every_s=group.fetch_every_us / 1e6,
            ends_on_error=plan.variant.fetch_errors == "end the fetcher",
        )

    def _consumes(
        self, cluster: Cluster, group: GroupPlan, plan: ConsumerPlan, program: Program
    ) -> Consumes:
        return Consumes(
            program.me,
            plan.variant,
            group.handling,
            str(self.folder),
            self.STORES[group.handling.store],
            balancer(cluster.plan.name),
            has_own_program=plan.program is not None,
            forwards=group.forwards,
            target=self._target(group),
        )

    def _target(self, group: GroupPlan) -> str | None:
        if group.forwards is None:
            return None
        return str(self.world.clusters[group.forwards.to].data.file.path)

    def _producer(self, plan: ProducerPlan) -> Job:
        cluster = self.world.clusters[plan.cluster]
        job = self._job(cluster, plan.node, producer_program(plan), PRODUCER_TIMEOUT_MS)
        part = Sends(plan, self.world.lives[plan.node], balancer(plan.cluster))
        return replace(job, about={"sends to": plan.cluster}, part=part)

    def _broker(self, cluster_name: str, plan: BrokerPlan) -> Job:
        cluster = self.world.clusters[cluster_name]
        program = broker_program(cluster.plan, plan, cluster.data.disks.get(plan.broker_id, {}))
        return replace(
            self._job(cluster, plan.node, program, cluster.plan.session_timeout_ms),
            about={"address": f"{plan.host}:{plan.port}"},
            port=self.world.ports[plan.node],
            part=None if cluster.sites is None else cluster.sites.part(plan),
        )

    def administrator(self, cluster: Cluster) -> Job:
        """The job of whoever creates the topics, in the layout that needs it."""
        name = f"{cluster.prefix}administrator"
        program = administrator(Administrator(name, tuple(sorted(cluster.data.homes.items()))))
        return self._job(cluster, name, program, cluster.plan.session_timeout_ms)

    def _job(self, cluster: Cluster, node: str, program: Program, timeout_ms: int) -> Job:
        world = self.world
        return Job(
            node,
            "",
            program,
            cluster.proxy.hosts_of(node),
            cluster.service.root,
            timeout_ms,
            str(self.folder / f"{node.replace('/', '-')}.{world.lives.get(node, 1)}.jsonl"),
            str(cluster.data.file.path),
            world.begin_ns,
            {},
            armed=world.nemesis.steps_of(node),
            skew_ms=world.skews.get(node, 0),
            kazoo=cluster.service.access.to_show,
        )
