"""Examines one namespace as an instructor may: `kubectl lablet doctor`."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import msgspec
import yaml

from vkprovider import __version__
from vkprovider.cli.checkup import setup, workloads
from vkprovider.doctor.findings import DoctorReport, Finding, Level, fault, unanswered, unchecked
from vkprovider.doctor.reading import UserReading
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.doctor.rights import INSTRUCTOR, INSTRUCTOR_DEFINITIONS, CheckedRight, grant_command, rights_in
from vkprovider.lablet.podspec import trial_of
from vkprovider.labs.checks import classroom, lablets
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden, Invalid, NotFound, OutsideError
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import CustomResource

_GROUP: Final = f"/apis/{wellknown.API_VERSION}"
_ELSEWHERE: Final = "Ask {owner} to mend it: the definition is not of this namespace."


class Classroom:
    """Examines the namespace of a class.

    Args:
        kube: The cluster and the instructor.
        context: The kubeconfig's context, for the report.
        namespace: That of the class.
        roles: The text of the shipped `roles.yaml`.
    """

    def __init__(self, kube: KubeClient, *, context: str, namespace: str, roles: str) -> None:
        self._kube = kube
        self._context = context
        self._namespace = namespace
        self._roles = {each["metadata"]["name"]: each for each in yaml.safe_load_all(roles) if each}
        self._reading = UserReading(kube)

    async def examine(self) -> DoctorReport:
        """Check everything that can be checked."""
        try:
            return await self._examine()
        except OutsideError as error:
            return unanswered(self._context, self._kube.server, error)

    async def _examine(self) -> DoctorReport:
        version = await self._kube.version()
        found = await self._check_namespace()
        if not found:
            user = (await Api(self._kube, self._namespace).review_self()).status.user_info.username
            command = grant_command(user, self._namespace)
            found += await self._check_rights(command)
            found += await self._check_class(command)
        findings = setup.sort([*found, *self._reading.found])
        return DoctorReport(self._context, self._kube.server, version, __version__, {}, findings)

    async def _check_namespace(self) -> list[Finding]:
        """Check that the namespace exists, if the user may know that: in one that does not exist nothing is wrong."""
        name = self._namespace
        try:
            await self._kube.get(f"/api/v1/namespaces/{name}")
        except NotFound:
            remedy = f"Name another one with -n, or ask an admin to make it: kubectl create namespace {name}"
            return [fault(f"Namespace/{name}", DoctorReason.NAMESPACE_MISSING, "it does not exist", remedy)]
        except Forbidden:
            return []
        return []

    async def _check_rights(self, command: str) -> list[Finding]:
        found = []
        for role, namespace in ((INSTRUCTOR, self._namespace), (INSTRUCTOR_DEFINITIONS, "")):
            rights = list(rights_in(self._roles[role], namespace))
            try:
                answers = await asyncio.gather(*(self._may(right) for right in rights))
            except OutsideError as error:
                found.append(unchecked(f"ClusterRole/{role}", DoctorReason.NOT_READABLE, error.message))
                continue
            missing = [right for right, allowed in zip(rights, answers, strict=True) if not allowed]
            found += classroom.check_rights(role, missing, command)
        return found

    async def _may(self, right: CheckedRight) -> bool:
        return await may(self._kube, right.attributes())

    async def _check_class(self, command: str) -> list[Finding]:
        """Check definitions, workers for them, Pods, pools and quotas."""
        core, apps = (f"{prefix}/namespaces/{self._namespace}" for prefix in ("/api/v1", "/apis/apps/v1"))
        everything = await self._reading.list(f"{_GROUP}/labletdefinitions", CustomResource, "LabletDefinition")
        workers = await self._reading.list(f"{_GROUP}/cmlworkers", CustomResource, "CMLWorker")
        unfinished = {"fieldSelector": "status.phase!=Succeeded"}
        pods = await self._reading.list(f"{core}/pods", lablets.SeenPod, "Pod", unfinished)
        pools = await self._reading.list(f"{apps}/replicasets", workloads.Workload, "ReplicaSet")
        refused = {"fieldSelector": f"reason={workloads.FAILED_CREATE}"}
        refusals = await self._reading.list(f"{core}/events", workloads.PodRefusal, "Event", refused)
        quotas = await self._reading.list(f"{core}/resourcequotas", classroom.Quota, "ResourceQuota")

        used = {pod.spec.runtime_class_name for pod in pods}
        used |= {pool.spec.template.spec.runtime_class_name for pool in pools if pool.spec.replicas}
        known = {each.metadata.name for each in everything}
        found: list[Finding] = []
        for definition in classroom.of_class(everything, self._namespace, used):
            found += await self._check_definition(definition, workers, command)
        boot_s, relevant = lablets.boot_timeouts(everything), [p for p in pods if lablets.is_relevant(p, known)]
        found += lablets.check_pods(
            relevant, datetime.fromtimestamp(self._kube.clock.wall(), UTC), known, boot_s=boot_s
        )
        found += workloads.check_workloads({"ReplicaSet": pools}, refusals, known)
        for quota in quotas:
            found += classroom.check_quota(quota)
        return found

    async def _check_definition(
        self, definition: CustomResource, workers: list[CustomResource], command: str
    ) -> list[Finding]:
        owner = classroom.owner(definition)
        faults = lablets.check_own(definition)
        if owner != self._namespace:
            whom = f"an instructor of namespace {owner}" if owner else "an admin"
            faults = [msgspec.structs.replace(each, remedy=_ELSEWHERE.format(owner=whom)) for each in faults]
        if any(each.level is Level.FAULT for each in faults):
            return faults
        if not self._reading.failed("CMLWorker"):
            faults += classroom.check_workers(definition, workers)
        return [*faults, *await self._try(definition.metadata.name, command)]

    async def _try(self, definition: str, command: str) -> list[Finding]:
        """Have the API server check a lablet, as it would before it made one; nothing is made."""
        path = f"/api/v1/namespaces/{self._namespace}/pods?dryRun=All"
        trial = {"metadata": {"generateName": "doctor-"}, "spec": trial_of(definition)}
        try:
            await self._kube.create(path, msgspec.json.encode(trial))
        except (Forbidden, Invalid) as error:
            if "cannot create resource" in error.message:
                return []  # a right of the instructor, which is reported as that
            return [classroom.check_refusal(definition, self._namespace, error.message, command)]
        except OutsideError as error:
            return [unchecked(f"LabletDefinition/{definition}", DoctorReason.NOT_READABLE, error.message)]
        return []
