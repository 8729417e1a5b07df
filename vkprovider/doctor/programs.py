"""What a check of any program needs: its Deployment or DaemonSet, the Pods of it, its settings, and its replicas."""

from collections.abc import Sequence
from typing import Final

import msgspec

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reading import UserReading, renewed_unix_s
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform import wellknown
from vkprovider.platform.messages import count
from vkprovider.platform.objects import Condition, ConfigMap, Lease, Metadata, RoleBinding, Secret

_APPS: Final = "/apis/apps/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_BEGINS: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Words of a container that is on its way."""
_IMAGE: Final = "image"
"""What is in the words of an image that cannot be had: ErrImagePull, ImagePullBackOff, InvalidImageName."""

_ENDS: Final = ("backoff", "error")
"""What is in the words of a container that ends again and again, or cannot begin."""


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _EnvFrom(msgspec.Struct, frozen=True, rename="camel"):
    config_map_ref: _Named = _Named()


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    env: tuple[_Variable, ...] = ()
    env_from: tuple[_EnvFrom, ...] = ()


class _SecretSource(msgspec.Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _Volume(msgspec.Struct, frozen=True):
    name: str
    secret: _SecretSource = _SecretSource()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()
    replicas: int = 0


class _WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    available_replicas: int = 0
    number_available: int = 0
    desired_number_scheduled: int = 0


class ProgramWorkload(msgspec.Struct, frozen=True):
    """A Deployment or DaemonSet."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _WorkloadStatus = _WorkloadStatus()

    @property
    def config_maps(self) -> list[str]:
        """The names of the ConfigMaps that its containers take settings from."""
        sources = [source for container in self.spec.template.spec.containers for source in container.env_from]
        return sorted({source.config_map_ref.name for source in sources} - {""})

    def secret_of(self, volume: str) -> str:
        """Return the name of the Secret that a volume mounts; "" if it mounts none."""
        return next((each.secret.secret_name for each in self.spec.template.spec.volumes if each.name == volume), "")

    @property
    def wanted(self) -> int:
        """How many Pods it asks for."""
        return self.spec.replicas or self.status.desired_number_scheduled

    @property
    def available(self) -> int:
        """How many of its Pods have been ready for a while."""
        return self.status.available_replicas or self.status.number_available


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Ended(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0


class _State(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None
    terminated: _Ended | None = None


class _ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: _State = _State()
    last_state: _State = _State()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[Condition] = []
    container_statuses: list[_ContainerStatus] = []


class ProgramPod(msgspec.Struct, frozen=True):
    """A Pod of a program."""

    metadata: Metadata
    status: _PodStatus = _PodStatus()

    @property
    def trouble(self) -> str:
        """What keeps it from being ready, in the words of Kubernetes; "" if it is, or is on its way."""
        said = {each.type: each for each in self.status.conditions}
        if (placed := said.get("PodScheduled")) is not None and placed.status == "False":
            return f"{placed.reason}: {placed.message}"
        for each in self.status.container_statuses:
            waiting, last = each.state.waiting, each.last_state.terminated
            if waiting is not None and waiting.reason not in _BEGINS:
                code = f" (exit code {last.exit_code})" if last is not None else ""
                return f"{waiting.reason}{code}: {waiting.message}".rstrip(": ")
        return ""


async def settings_of(reading: UserReading, workload: ProgramWorkload, about: str) -> dict[str, str]:
    """Return the environment of the containers of a workload: their variables, and the ConfigMaps that they name."""
    settings: dict[str, str] = {}
    for name in workload.config_maps:
        path = f"/api/v1/namespaces/{workload.metadata.namespace}/configmaps/{name}"
        found = await reading.read(path, ConfigMap, about)
        settings |= found.data if found is not None else {}
    variables = [each for container in workload.spec.template.spec.containers for each in container.env]
    return settings | {each.name: each.value for each in variables if each.value}


def variables_of(secret: Secret | None) -> dict[str, str]:
    """Return the settings in a Secret, as a program reads the folder where it is mounted."""
    data = secret.data if secret is not None else {}
    return {name: value.decode(errors="replace").rstrip("\r\n") for name, value in data.items() if name.isupper()}


async def check_program(reading: UserReading, workload: ProgramWorkload, kind: str, consequence: str) -> list[Finding]:
    """Check that the Pods of a program are there.

    Args:
        reading: Reads them.
        workload: Its Deployment or DaemonSet; the Pods have its name as `app.kubernetes.io/name`.
        kind: Which of the two.
        consequence: What does not happen while no Pod is available.
    """
    if workload.available >= workload.wanted > 0:
        return []
    meta = workload.metadata
    about = f"{kind}/{meta.namespace}/{meta.name}"
    selected = {"labelSelector": f"app.kubernetes.io/name={meta.name}"}
    pods = await reading.list(f"/api/v1/namespaces/{meta.namespace}/pods", ProgramPod, about, selected)
    return check_available(about, workload, pods, consequence)


def check_available(
    about: str, workload: ProgramWorkload, pods: Sequence[ProgramPod], consequence: str
) -> list[Finding]:
    """Check that a program has the Pods that it asks for.

    Args:
        about: Its Deployment or DaemonSet, as findings name it.
        workload: That.
        pods: Its Pods.
        consequence: What does not happen while none is available.
    """
    wanted, there, reason = workload.wanted, workload.available, DoctorReason.PROGRAM_UNAVAILABLE
    meta = workload.metadata
    if not wanted and about.startswith("Deployment/"):
        remedy = f"kubectl -n {meta.namespace} scale deployment/{meta.name} --replicas=2"
        return [note(about, reason, f"it is scaled to 0: {consequence}", remedy)]
    if not wanted:
        return [note(about, reason, f"it selects no node: {consequence}", f"kubectl -n {meta.namespace} get ds,nodes")]
    if there >= wanted:
        return []
    trouble = next((f"; {pod.metadata.name}: {pod.trouble}" for pod in pods if pod.trouble), "")
    verb = "is" if there == 1 else "are"
    text = f"{there} of {count(wanted, 'Pod')} {verb} available{'' if there else f': {consequence}'}{trouble}"
    report = note if there else fault
    return [report(about, reason, text, _mending(meta, trouble))]


def _mending(meta: Metadata, trouble: str) -> str:
    """Return the command that mends what keeps a Pod from being ready, or shows it."""
    which = f"-l app.kubernetes.io/name={meta.name}"
    if _IMAGE in trouble.lower():
        return (
            "Name an image that your nodes can pull, in `images` of your overlay (docs/install.md) or "
            "`image.repository` of the chart, and apply it again"
        )
    if trouble:
        word = "logs --tail=20 --prefix" if any(each in trouble.lower() for each in _ENDS) else "describe pods"
        return f"kubectl -n {meta.namespace} {word} {which}"
    return f"kubectl -n {meta.namespace} describe pods {which}; kubectl -n {meta.namespace} logs {which} --prefix"


async def deployment(reading: UserReading, namespace: str, name: str) -> ProgramWorkload | None:
    """Read the Deployment of a program; None if there is none."""
    return await reading.read(
        f"{_APPS}/namespaces/{namespace}/deployments/{name}", ProgramWorkload, f"Deployment/{namespace}/{name}"
    )


async def replicas_of(reading: UserReading, namespace: str, program: str, now_s: float) -> int:
    """Return how many replicas of a program renew their Leases, wherever they run.

    Args:
        reading: Reads the Leases.
        namespace: Where they are.
        program: Its name, with which those of the Leases begin.
        now_s: Unix time by the API server's clock.
    """
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    ours = {"labelSelector": f"{wellknown.LABEL_MANAGED_BY}={wellknown.MANAGER}"}
    leases = await reading.list(path, Lease, f"Namespace/{namespace}", ours)
    return sum(
        each.metadata.name.startswith(f"{program}-replica-")
        and now_s - renewed_unix_s(each) <= (each.spec.lease_duration_seconds or 0)
        for each in leases
    )


async def bindings_of(reading: UserReading) -> list[RoleBinding]:
    """Read the RoleBindings of all namespaces, and the ClusterRoleBindings, which are of none."""
    return [
        each
        for kind in ("rolebindings", "clusterrolebindings")
        for each in await reading.list(f"{_RBAC}/{kind}", RoleBinding, "RoleBinding")
    ]
