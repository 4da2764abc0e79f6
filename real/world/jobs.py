"""The jobs of the processes of a live run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from watchkeeper.model.actor.program import NO_PROGRAM, Program
from watchkeeper.model.group.variants import FetchErrors
from watchkeeper.model.plan.plan import (
    BrokerPlan,
    ConsumerPlan,
    GroupPlan,
    ProducerPlan,
    balancer,
)
from watchkeeper.model.programs import (
    PRODUCER_TIMEOUT_MS,
    administrator_program,
    broker_program,
    consumer_program,
    producer_program,
)
from watchkeeper.real.member.job import ConsumerRole, Job, ProducerRole, WriterRole
from watchkeeper.real.results.of_member import STORES
from watchkeeper.real.world.cluster import Cluster

if TYPE_CHECKING:
    from watchkeeper.real.world.world import World


class Jobs:
    """Creates the jobs of a run."""

    STORES = STORES

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder

    def of(self, name: str, *, new_id: bool) -> Job:
        """The job of a consumer, a broker, a producer or an administrator."""
        world = self.world
        if name in world.consumers:
            return self._consumer(*world.consumers[name], new_id=new_id)
        if name in world.producers.plans:
            return self._producer(world.producers.plans[name])
        if name in world.producers.writers:
            return self._writer(name, world.clusters[world.producers.writers[name]])
        if name in world.administrators:
            return self._administrator(world.administrators[name])
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
            resends_watches=plan.variant.client_resends_watches,
        )
        if cluster.plan.has_messages:
            return replace(job, role=self._consumer_role(cluster, group, plan, program))
        return replace(
            job,
            fetch_every_s=group.fetch_every_us / 1e6,
            ends_on_error=plan.variant.fetch_errors is FetchErrors.END_FETCHER,
        )

    def _consumer_role(
        self, cluster: Cluster, group: GroupPlan, plan: ConsumerPlan, program: Program
    ) -> ConsumerRole:
        return ConsumerRole(
            program.me,
            plan.variant,
            group.handling,
            str(self.folder),
            self.STORES[group.handling.store],
            balancer(cluster.plan.name),
            has_own_program=plan.program is not None,
            forwards=group.forwards,
            target=self._target(group),
            brokers=cluster.plan.leader_brokers,
            fetches=group.fetches,
        )

    def _target(self, group: GroupPlan) -> str | None:
        if group.forwards is None:
            return None
        return str(self.world.clusters[group.forwards.to].data.file.path)

    def _producer(self, plan: ProducerPlan) -> Job:
        cluster = self.world.clusters[plan.cluster]
        job = self._job(cluster, plan.node, producer_program(plan), PRODUCER_TIMEOUT_MS)
        role = ProducerRole(plan, self.world.lives[plan.node], balancer(plan.cluster))
        return replace(job, about={"sends to": plan.cluster}, role=role)

    def _writer(self, name: str, cluster: Cluster) -> Job:
        job = self._job(cluster, name, NO_PROGRAM, cluster.plan.session_timeout_ms)
        return replace(job, role=WriterRole(cluster.plan.addresses))

    def _broker(self, cluster_name: str, plan: BrokerPlan) -> Job:
        cluster = self.world.clusters[cluster_name]
        program = broker_program(cluster.plan, plan, cluster.data.disks.get(plan.broker_id, {}))
        return replace(
            self._job(cluster, plan.node, program, cluster.plan.session_timeout_ms),
            about={"address": f"{plan.host}:{plan.port}"},
            port=self.world.ports[plan.node],
            resends_watches=True,
            role=None if cluster.hosts is None else cluster.hosts.role(plan),
        )

    def _administrator(self, cluster: Cluster) -> Job:
        name = cluster.administrator
        program = administrator_program(cluster.plan, name, cluster.data.homes)
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
