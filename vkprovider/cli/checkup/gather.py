"""Reads the cluster, probes the workers, and passes what was seen to the checks."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from tunnels.mqtt.broker import Broker
from vkprovider import __version__
from vkprovider.classroom.schedules import CRON_JOBS, LABELS, CronJob
from vkprovider.cli.checkup import rooms, setup, workloads
from vkprovider.cli.environment import unknown
from vkprovider.cml.spi import Credentials
from vkprovider.doctor import findings
from vkprovider.doctor.findings import DoctorReport, Finding, Level, note, unchecked
from vkprovider.doctor.reading import UserReading, renewed_unix_s, unix_s
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.doctor.rights import CheckedRight, rights_of
from vkprovider.lablet import names
from vkprovider.lablet.models.crd import crds
from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.labs.checks import kubelet, lablets, workers
from vkprovider.labs.checks.agents import ask_agents
from vkprovider.labs.checks.asking import ask, read_secret
from vkprovider.labs.kubelet.certificate import REQUESTS, SigningRequest
from vkprovider.labs.pure.worker.reach import destination_of
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.mux import checks as muxes
from vkprovider.platform import wellknown
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Forbidden, InputError, OutsideError
from vkprovider.platform.kube.access import may, user_may
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import (
    ConfigMap,
    CustomResource,
    Lease,
    Metadata,
    Node,
    RoleBinding,
    RuntimeClass,
    SelfSubjectReview,
)
from vkprovider.platform.rights import User
from vkprovider.platform.runtime.members import LABEL_MEMBER, MEMBER_PREFIX
from vkprovider.portal.checks import gather as portals

_PROBES_MAX: Final = 16
"""Workers asked at the same time."""
_GROUP: Final = f"/apis/{wellknown.API_VERSION}"
_MANAGED: Final = {"labelSelector": f"{wellknown.LABEL_MANAGED_BY}={wellknown.MANAGER}"}

_WORKLOADS: Final = {
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Job": "/apis/batch/v1/jobs",
}
_AUTHORIZATION: Final = "authorization.k8s.io/v1"


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


class Doctor:
    """Examines one cluster.

    Args:
        kube: The cluster and the user; what this user may not read is reported as unchecked.
        context: The kubeconfig's context, for the report.
        namespace: The provider's.
        manifest: The text of the shipped `rbac.yaml`.
        probe: Whether to probe the workers from this machine.
        broker: That of `spec.tunnel: mqtt`, as this process reaches it: None if its settings name none, or why they
            cannot be used.
    """

    def __init__(
        self,
        kube: KubeClient,
        *,
        context: str,
        namespace: str,
        manifest: str,
        probe: bool = True,
        broker: Broker | InputError | None = None,
    ) -> None:
        self._kube = kube
        self._context = context
        self._namespace = namespace
        self._logins = wellknown.logins_namespace(namespace)
        self._settings: Mapping[str, str] = {}
        self._manifest = manifest
        self._probing = probe
        self._broker = broker
        self._agents: dict[str, workers.WorkerProbe] = {}
        self._found: list[Finding] = []
        self._reading = UserReading(kube)
        self._cml: dict[str, str] = {}
        self._ahead_s = 0.0
        self._nodes: list[Node] = []
        self._workers: list[CustomResource] = []

    async def examine(self) -> DoctorReport:
        """Check everything."""
        version = await self._kube.version()
        self._found += setup.check_version(version)
        await self._check_clock()
        elsewhere = setup.check_installed(self._namespace, await self._homes())
        self._found += elsewhere
        if not elsewhere:
            await self._check_setup()
            alive = await self._replicas()
            await self._check_clocks()
            await self._check_workers(alive)
            await self._check_lablets()
        findings = setup.sort([*self._found, *self._reading.found])
        cml = dict(sorted(self._cml.items()))
        return DoctorReport(self._context, self._kube.server, version, __version__, cml, findings)

    # --------------------------------------------------------------------------------------------- the installation

    async def _homes(self) -> frozenset[str]:
        """Return the namespaces that the provider's ClusterRoleBinding names; empty if there is none to be read.

        Few users may read it, and nothing else depends on it: that is no finding.
        """
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{wellknown.SERVICE_ACCOUNT}"
        binding = await self._reading.glance(path, RoleBinding)
        return binding.namespaces if binding is not None else frozenset()

    async def _check_setup(self) -> None:
        for wanted in crds():
            name = wanted["metadata"]["name"]
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
            found = await self._reading.read(path, dict, f"CustomResourceDefinition/{name}")
            if found is not None or not self._reading.failed(f"CustomResourceDefinition/{name}"):
                self._found += setup.check_crd(wanted, found)
        namespace = self._namespace
        about = f"Namespace/{namespace}"
        exists = await self._reading.read(f"/api/v1/namespaces/{namespace}", _Object, about) is not None
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{wellknown.SERVICE_ACCOUNT}"
        account = exists and await self._reading.read(path, _Object, about) is not None
        if self._reading.failed(about):
            return
        found_here = setup.check_namespace(namespace, exists=exists, account=account)
        self._found += found_here
        if not found_here:
            await self._check_settings()
            await self._check_rights()

    async def _check_settings(self) -> None:
        name = f"{self._namespace}/{setup.SETTINGS}"
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{setup.SETTINGS}"
        found = await self._reading.read(path, ConfigMap, f"ConfigMap/{name}")
        settings = found.data if found is not None else {}
        self._settings = settings
        self._logins = settings.get("VKPROVIDER_LOGINS_NAMESPACE") or self._logins
        self._found += setup.check_transport(self._namespace, settings)
        self._found += setup.check_settings(self._namespace, unknown(settings))
        self._found += await muxes.check_relays(
            self._reading, settings.get("VKPROVIDER_KUBELET_PORTS") or KubeletSettings().ports
        )

    async def _check_rights(self) -> None:
        account = f"{self._namespace}/{wellknown.SERVICE_ACCOUNT}"
        shipped = rights_of(self._manifest, self._namespace, self._logins)
        rights = setup.needed_rights(shipped, self._settings)
        try:
            answers = await asyncio.gather(*(self._may(right) for right in rights))
        except OutsideError as error:
            text = f"its rights cannot be checked: {error.message}"
            self._found.append(unchecked(f"ServiceAccount/{account}", DoctorReason.RIGHTS_UNKNOWN, text))
            return
        missing = [right for right, allowed in zip(rights, answers, strict=True) if not allowed]
        self._found += setup.check_rights(account, missing)

    async def _may(self, right: CheckedRight) -> bool:
        """Return whether the ServiceAccount has a right: by its name, or by this user if that is the ServiceAccount.

        Raises:
            OutsideError: The API server refuses both questions.
        """
        user = User.of_account(self._namespace, wellknown.SERVICE_ACCOUNT)
        try:
            return await user_may(self._kube, user, right.attributes())
        except Forbidden:
            if (await self._review_self()).status.user_info.username != user.username:
                raise
            return await may(self._kube, right.attributes())

    async def _review_self(self) -> SelfSubjectReview:
        return await Api(self._kube, self._namespace).review_self()

    async def _check_clock(self) -> None:
        """Compare this machine's clock with the API server's, which stamps a review that every user may create."""
        began_s = time.time()
        try:
            stamp = (await self._review_self()).metadata.creation_timestamp
        except OutsideError as error:
            self._found.append(
                unchecked("Cluster", DoctorReason.CLOCK_UNKNOWN, f"its clock cannot be read: {error.message}")
            )
            return
        if stamp:
            self._ahead_s = unix_s(stamp) + 0.5 - (began_s + time.time()) / 2  # whole seconds
            self._found += findings.check_clock("Cluster", "the API server", self._ahead_s)

    async def _replicas(self) -> set[str]:
        """Return the replicas that live: by the clock, and in doubt by waiting for a renewal."""
        about = f"Namespace/{self._namespace}"
        first = await self._members(about)
        if self._reading.failed(about):
            return set()
        now = self._now_s()
        ages = {name: now - renewed_unix_s(lease) for name, lease in first.items()}
        silent = {name: age for name, age in ages.items() if age > (first[name].spec.lease_duration_seconds or 0)}
        if silent:
            await asyncio.sleep(max((first[name].spec.lease_duration_seconds or 0) for name in silent) / 3)
            again = await self._members(about)
            for name in [n for n in silent if n in again and renewed_unix_s(again[n]) != renewed_unix_s(first[n])]:
                del silent[name]
        alive = set(first) - set(silent)
        self._found += setup.check_replicas(self._namespace, alive, silent)
        versions = {name: first[name].metadata.annotations.get(wellknown.ANNOTATION_VERSION, "") for name in alive}
        self._found += setup.check_versions(self._namespace, versions)
        return alive

    async def _check_clocks(self) -> None:
        """Report what the replicas of all our programs say of their clocks."""
        about = f"Namespace/{self._namespace}"
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        for lease in await self._reading.list(path, Lease, about, {"labelSelector": _MANAGED["labelSelector"]}):
            self._found += setup.check_skew(lease)

    async def _members(self, about: str) -> dict[str, Lease]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"
        leases = await self._reading.list(path, Lease, about, {"labelSelector": LABEL_MEMBER})
        return {lease.metadata.name.removeprefix(MEMBER_PREFIX): lease for lease in leases}

    # --------------------------------------------------------------------------------------------- workers

    async def _check_workers(self, alive: set[str]) -> None:
        resources = await self._reading.list(f"{_GROUP}/cmlworkers", CustomResource, "CMLWorker")
        if not resources:
            if not self._reading.failed("CMLWorker"):
                self._found.append(note("CMLWorker", DoctorReason.NO_WORKER, "there is not one, so no lablet can run"))
            return
        self._workers = resources
        self._found += workers.check_urls(resources) + workers.check_addresses(resources)
        if self._probing:
            self._agents, found = await ask_agents(self._broker, resources, self._namespace)
            self._found += found
        installation = await self._reading.read("/api/v1/namespaces/kube-system", _Object, "Namespace/kube-system")
        nodes = {n.metadata.name: n for n in await self._reading.list("/api/v1/nodes", Node, "Node")}
        self._nodes = [node for name, node in nodes.items() if name.startswith(names.NODE_PREFIX)]
        if alive:
            await self._check_kubelet(self._nodes)
        path = f"/apis/coordination.k8s.io/v1/namespaces/{wellknown.NODE_LEASE_NAMESPACE}/leases"
        leases = {item.metadata.name: item for item in await self._reading.list(path, Lease, "Lease", _MANAGED)}

        async def check(resource: CustomResource) -> list[Finding]:
            name = resource.metadata.name
            secret, probe = await self._ask(resource)
            node = nodes.get(names.node_name(name))
            seen = workers.SeenWorker(resource, node, secret, probe, bool(alive))
            uid = installation.metadata.uid if installation is not None else ""
            found = workers.check_worker(seen, logins=self._logins, before=self._namespace, installation=uid)
            self._cml[name] = probe.version or worker_status(resource).cml_version or ""
            healthy = all(finding.level is not Level.FAULT for finding in found)
            if healthy and not self._reading.failed("Lease"):
                lease = leases.get(names.node_name(name))
                found += setup.check_owner(name, lease, alive) or setup.check_heartbeat(lease, alive, self._now_s())
            return found

        for found in await at_most(_PROBES_MAX, check, resources):
            self._found += found

    async def _check_kubelet(self, nodes: list[Node]) -> None:
        """Check what the living replicas serve."""
        ours = {"labelSelector": f"{names.LABEL_COMPONENT}={names.COMPONENT_SERVING}"}
        path = Resource(self._kube, REQUESTS).path
        requests = await self._reading.list(path, SigningRequest, "CertificateSigningRequest", ours)
        self._found += kubelet.check_requests(self._namespace, requests)
        self._found += kubelet.check_nodes(self._namespace, nodes)

    async def _ask(self, resource: CustomResource) -> tuple[workers.SecretState, workers.WorkerProbe]:
        """Read a worker's Secret, and log in to the worker with it."""
        try:
            spec = parse_worker_spec(resource.spec)
        except InputError as error:
            return workers.SecretState(), workers.WorkerProbe(error=error)
        state, credentials = workers.SecretState(), None
        if spec.credentials_secret_name:
            destination = destination_of(resource.metadata.name, spec)
            secrets = Api(self._kube, self._namespace, self._logins).secrets
            state, credentials = await read_secret(secrets, spec.credentials_secret_name, self._logins, destination)
        return state, await self._probe(resource.metadata.name, spec, credentials)

    async def _probe(self, name: str, spec: CMLWorkerSpec, credentials: Credentials | None) -> workers.WorkerProbe:
        if not self._probing or spec.tunnel != "direct" or spec.cml_url.startswith("null://"):
            return self._agents.get(name, workers.WorkerProbe())
        return await ask(spec, credentials)

    def _now_s(self) -> float:
        """Return the Unix time by the API server's clock."""
        return time.time() + self._ahead_s

    # --------------------------------------------------------------------------------------------- lablets

    async def _check_lablets(self) -> None:
        resources = await self._reading.list(f"{_GROUP}/labletdefinitions", CustomResource, "LabletDefinition")
        path = "/apis/node.k8s.io/v1/runtimeclasses"
        classes = {c.metadata.name: c for c in await self._reading.list(path, RuntimeClass, "RuntimeClass")}
        for resource in resources:
            self._found += lablets.check_definition(resource, classes.get(resource.metadata.name))
        self._found += await muxes.check_muxes(self._reading, self._namespace, resources, self._now_s())
        definitions = {resource.metadata.name for resource in resources}
        kind, unfinished = lablets.SeenPod, {"fieldSelector": "status.phase!=Succeeded"}
        pods = await self._reading.list("/api/v1/pods", kind, "Pod", unfinished)
        relevant = [pod for pod in pods if lablets.is_relevant(pod, definitions)]
        boot_s = lablets.boot_timeouts(resources)
        self._found += lablets.check_pods(
            relevant, datetime.fromtimestamp(self._now_s(), UTC), definitions, self._nodes, boot_s
        )
        await self._check_workloads(definitions)
        await self._check_waits(resources, boot_s)
        await self._check_schedules(resources, relevant)

    async def _check_schedules(self, resources: list[CustomResource], pods: list[lablets.SeenPod]) -> None:
        """Check whether there will be room for what schedules of pools ask."""
        path, selected = Resource(self._kube, CRON_JOBS).path, {"labelSelector": LABELS}
        jobs = await self._reading.list(path, CronJob, "CronJob", selected)
        now = datetime.fromtimestamp(self._now_s(), UTC)
        self._found += rooms.check_room(jobs, resources, self._workers, self._nodes, pods, now)

    async def _check_workloads(self, definitions: set[str]) -> None:
        found = {kind: await self._reading.list(path, workloads.Workload, kind) for kind, path in _WORKLOADS.items()}
        refused = {"fieldSelector": f"reason={workloads.FAILED_CREATE}"}
        refusals = await self._reading.list("/api/v1/events", workloads.PodRefusal, "Event", refused)
        self._found += workloads.check_workloads(found, refusals, definitions)

    async def _check_waits(self, resources: list[CustomResource], boot_s: dict[str, int]) -> None:
        """Check what waits for lablets: Deployments, and the portal if there is one here."""
        deployments = await self._reading.list("/apis/apps/v1/deployments", workloads.Workload, "Deployment")
        self._found += workloads.check_deadlines(deployments, boot_s)
        now = datetime.fromtimestamp(self._now_s(), UTC)
        self._found += await portals.check_portal(self._reading, self._namespace, resources, boot_s, now)
