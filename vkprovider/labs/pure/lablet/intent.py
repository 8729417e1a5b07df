"""What a Pod asks for: a version of a definition; and which lablet of a warm pool takes up new content.

A Pod that cannot run here is refused with a waiting reason and stays Pending; phase Failed would make its ReplicaSet
replace it for ever. Only a stray, which no controller would replace, ends (`running`).

New content for a warm pool: every replica sees all Pods of a pool and comes to the same choice; only the owner of the
chosen one acts. What the Pods report decides about the order alone: whether a lab is replaced is decided from the
lablet's claim.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.exposure import Lending
from vkprovider.lablet.inputs import inputs_of, tag_of
from vkprovider.lablet.names import LAB_CONTAINER, LABEL_OWNER_NAMESPACE
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.standing import is_ready
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.session.delivery import NO_TERMS, Terms
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault, count, listed
from vkprovider.platform.objects import CustomResource, Pod

WORDS_MAX: Final = 20
"""Names in a message; a topology may have hundreds of devices."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What Pods need of a LabletDefinition.

    Attributes:
        versions: The versions that a new pod may run, newest first.
        fault: Why it is not ready, if it is not.
        terms: How its lablets are delivered.
        expose: Which of their ports are lent to which mux; None for none.
        owner: The namespace whose lablets alone may run it; "" for all.
        boot_timeout_s: How long a device may take to boot; None if the definition is silent.
    """

    name: str
    uid: str
    environment: str
    versions: tuple[Content, ...] = ()
    fault: Fault | None = None
    terms: Terms = NO_TERMS
    expose: Lending | None = None
    owner: str = ""
    boot_timeout_s: int | None = None


def owner_of(resource: CustomResource) -> str:
    """Return the namespace whose lablets alone may run a definition: that of its class, if it keeps the topology there.

    A topology in the definition itself is shared with all who read it.
    """
    owner = resource.metadata.labels.get(LABEL_OWNER_NAMESPACE, "")
    where = (resource.spec.get("source") or {}).get("configMap") or {}
    return owner if owner == where.get("namespace") else ""


def resolve(pod: Pod, definitions: Mapping[str, Definition], *, environment: str) -> Content:
    """Find the content that a new Pod runs.

    Args:
        pod: A Pod bound to one of our Nodes.
        definitions: All LabletDefinitions by name.
        environment: The worker's.

    Raises:
        InputError: `NotALablet`, `DefinitionNotShared`, `DefinitionNotReady`, `DefinitionMismatch`,
            `EnvironmentMismatch`, `UnknownVersion`, `ChargedTooLittle` or `UnknownDevice`.
    """
    definition = definitions.get(pod.spec.runtime_class_name)
    if definition is None:
        name = pod.spec.runtime_class_name
        what = f"runtimeClassName {name!r} names no LabletDefinition" if name else "the pod has no runtimeClassName"
        raise InputError(
            Trouble.NOT_A_LABLET,
            f"this node runs lablets only, and {what}; set it to a LabletDefinition (kubectl get ldef), or remove the "
            "tolerations that let the pod come here",
        )
    if pod.spec.init_containers:
        raise InputError(
            Trouble.NOT_A_LABLET, "a lablet has no init containers; remove them, or the injector that adds them"
        )
    if definition.owner not in {"", pod.metadata.namespace}:
        raise InputError(
            Trouble.DEFINITION_NOT_SHARED,
            f"definition {definition.name} is of the class in namespace {definition.owner}, which does not share it",
        )
    version = _version(pod, definition)
    if definition.environment != environment:
        raise InputError(
            Trouble.ENVIRONMENT_MISMATCH,
            f"definition {definition.name} runs in environment {definition.environment}, this worker is in "
            f"{environment}; do not set spec.nodeName yourself",
        )
    content = _choose(pod, definition, version)
    check_containers(pod, content)
    return content


def _version(pod: Pod, definition: Definition) -> str:
    versions = set()
    for container in pod.spec.containers:
        name, version = tag_of(container.image)
        if name != definition.name:
            raise InputError(
                Trouble.DEFINITION_MISMATCH,
                f"container {container.name!r} has image {container.image!r}, but runtimeClassName is "
                f"{definition.name!r}; the images must be {definition.name}[:VERSION]",
            )
        versions.add(version)
    if len(versions) > 1:
        raise InputError(
            Trouble.DEFINITION_MISMATCH,
            f"the containers name versions {', '.join(sorted(v or 'latest' for v in versions))}; a lablet has one",
        )
    return versions.pop() if versions else ""


def _choose(pod: Pod, definition: Definition, version: str) -> Content:
    if not definition.versions:
        fault = definition.fault
        why = f"{fault.reason}: {fault.message}" if fault else "its content is not read yet"
        raise InputError(Trouble.DEFINITION_NOT_READY, f"LabletDefinition {definition.name} is not ready: {why}")
    charged = Resources.from_quantities(pod.spec.overhead)
    if not version:
        for content in definition.versions:
            if charged.covers(content.need):
                return content
        raise _too_little(pod, charged, definition.versions[0])
    for content in definition.versions:
        if content.version == version:
            if charged.covers(content.need):
                return content
            raise _too_little(pod, charged, content)
    raise InputError(
        Trouble.UNKNOWN_VERSION,
        f"definition {definition.name} has no version {version!r}; it keeps "
        f"{', '.join(content.version for content in definition.versions)}",
    )


def _too_little(pod: Pod, charged: Resources, content: Content) -> InputError:
    return InputError(
        Trouble.CHARGED_TOO_LITTLE,
        f"pod {pod.metadata.name} was admitted before version {content.version} needed more "
        f"({'; '.join(charged.shortage(content.need))}); delete it, its successor is charged what it needs",
    )


def changed_image(pod: Pod, claim: Claim) -> str:
    """Return a message about a container whose image was changed after the Pod was bound; "" if there is none."""
    for container in pod.spec.containers:
        name, version = tag_of(container.image)
        if name != claim.definition or version not in {"", claim.version}:
            return (
                f"container {container.name!r} now has image {container.image!r}, but a lablet keeps the one it began "
                f"with, {claim.definition}:{claim.version}; create a new pod, or change the pod's template"
            )
    return ""


def devices_of(pod: Pod, content: Content) -> dict[str, str]:
    """Map container names to device labels, for the containers that stand for a device."""
    labels = {device.container: device.label for device in content.topology.devices}
    return {c.name: labels[c.name] for c in pod.spec.containers if c.name in labels}


def check_containers(pod: Pod, content: Content) -> None:
    """Check that every container is the lab or one of its devices.

    Raises:
        InputError: `UnknownDevice`.
    """
    known = {device.container for device in content.topology.devices}
    for container in pod.spec.containers:
        if container.name != LAB_CONTAINER and container.name not in known:
            raise InputError(
                Trouble.UNKNOWN_DEVICE,
                f"container {container.name!r} names no device of {content.definition} {content.version}; "
                f"call it {LAB_CONTAINER!r} for the whole lab, or one of {listed(sorted(known), WORDS_MAX)}",
            )


def shortage(need: Resources, taken: Resources, capacity: Resources, *, lablets: int, pods: int) -> InputError | None:
    """Check what the scheduler checks, for pods that were bound past it.

    Args:
        need: What the pod is charged.
        taken: What the lablets with a claim on the worker are charged in all.
        capacity: What the worker holds.
        lablets: How many lablets have a claim on it.
        pods: How many it holds.
    """
    missing = capacity.shortage(taken.plus(need))
    if missing:
        resource = missing[0].split()[0]
        return InputError(_out_of(resource), f"the worker cannot hold one more lablet: {'; '.join(missing)}")
    if lablets >= pods:
        return InputError(_out_of("pods"), f"the worker holds {count(lablets, 'lablet')}, at most {pods}")
    return None


def _out_of(resource: str) -> Trouble:
    return Trouble.OUT_OF.worded(f"{Trouble.OUT_OF}{resource}")


class WarmPool(NamedTuple):
    """A warm pool: the lablets of one definition with one value of the pool label in one namespace."""

    namespace: str
    name: str
    definition: str


class Member(NamedTuple):
    """A lablet of a pool.

    Attributes:
        uid: Of its Pod.
        ready: Whether it is Ready, and stays.
        digest: Of the content that it would run if it began now; "" if that is what it runs.
    """

    uid: str
    ready: bool
    digest: str


def pool_of(pod: Pod) -> WarmPool | None:
    """Return the pool that a Pod is free in; None if it is in none, or somebody uses it."""
    meta = pod.metadata
    if not meta.labels.get(names.LABEL_POOL) or pod.terminal:
        return None
    inputs = inputs_of(meta)
    if inputs.username or inputs.lent_by or inputs.desired is not None:
        return None
    return WarmPool(meta.namespace, inputs.pool, pod.spec.runtime_class_name)


def member_of(pod: Pod, definitions: Mapping[str, Definition]) -> Member:
    """Describe a lablet of a pool."""
    meta = pod.metadata
    return Member(meta.uid, is_ready(pod) and meta.deletion_timestamp is None, _newer(pod, definitions))


def _newer(pod: Pod, definitions: Mapping[str, Definition]) -> str:
    definition = definitions.get(pod.spec.runtime_class_name)
    runs = pod.metadata.annotations.get(names.ANNOTATION_CONTENT, "").rpartition(":")[2]
    if definition is None or not runs or not definition.versions or definition.versions[0].digest == runs:
        return ""
    try:
        content = resolve(pod, definitions, environment=definition.environment)
    except InputError:
        return ""  # no version that is kept fits what the Pod was charged
    return content.digest if content.digest != runs else ""


def next_up(members: Iterable[Member]) -> Member | None:
    """Return the lablet of a pool whose turn it is: none while another one is not Ready."""
    known = sorted(members)
    if not all(member.ready for member in known):
        return None
    return next((member for member in known if member.digest), None)
