"""The facts about one lablet, gathered from what this replica has in memory, and its variables, resolved.

Nothing of a Pod's variables is kept, neither they nor their values: a Pod with variables is read again for each import,
and a ConfigMap or Secret is read by its name, never listed or watched. The right to do so is given namespace by
namespace; a lablet whose namespace did not give it says so and waits. A lablet that waits tries again with the back-off
of its step.

Facts are gathered before every step, several times a turn, so whatever stands here is paid for each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.inputs import NOTHING, inputs_of
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.controllers.lablet.index import Lablet
from vkprovider.labs.controllers.lablet.ports import slice_of
from vkprovider.labs.controllers.session.sessions import Sessions
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import intent
from vkprovider.labs.pure.lablet.boots import NO_PATIENCE, StartPatience
from vkprovider.labs.pure.lablet.decisions.stepfault import api_fault
from vkprovider.labs.pure.lablet.environment.resolve import NO_ENVIRONMENT, Environment, resolve
from vkprovider.labs.pure.lablet.environment.sources import (
    CHARS_MAX,
    SOURCES_MAX,
    Placement,
    Read,
    SourceKeys,
    Unread,
    VariableSource,
    content_of,
    sources_of,
)
from vkprovider.labs.pure.lablet.exposing import NOT_EXPOSED, Exposing, NoSlice, address_fault, read_slice, wanted_of
from vkprovider.labs.pure.lablet.facts import Facts
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.lablet.memory import Presence, lab_seen
from vkprovider.labs.pure.session.delivery import NO_DELIVERY
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.worker.node import is_ip
from vkprovider.platform.environment import EnvPod
from vkprovider.platform.errors import (
    Forbidden,
    InputError,
    OutsideError,
    StepFailed,
    Throttled,
    Unauthorized,
    Unavailable,
    from_status,
)
from vkprovider.platform.messages import Fault, count
from vkprovider.platform.objects import ENV, EndpointSlice, Pod
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class Environments:
    """Resolves the variables of Pods."""

    ctx: Context

    async def of(self, pod: Pod, worker: Worker) -> Environment:
        """Return the variables of a Pod's containers; no request is sent for a Pod without any.

        Raises:
            InputError: `CreateContainerConfigError`, see `resolve`; also if the Pod refers to too much.
            StepFailed: The API server does not answer.
        """
        if ENV not in pod.spec.other_fields:
            return NO_ENVIRONMENT
        whole = await self._pod(pod)
        wanted = sources_of(whole)
        if len(wanted) > SOURCES_MAX:
            raise _fault(f"the variables refer to {len(wanted)} ConfigMaps and Secrets, at most {SOURCES_MAX}")
        read, room = dict[VariableSource, Read](), CHARS_MAX
        for source, keys in wanted.items():
            read[source] = found = await self._read(pod.metadata.namespace, source, keys)
            room -= sum(map(len, found.values.values())) if isinstance(found, SourceKeys) else 0
            if room < 0:
                raise _fault(f"the ConfigMaps and Secrets of the variables have more than {CHARS_MAX} characters")
        total = worker.capacity.total if worker.capacity is not None else Resources()
        return resolve(whole, read, Placement(worker.seen.ip, total))

    async def _pod(self, pod: Pod) -> EnvPod:
        meta = pod.metadata
        try:
            found = await self.ctx.api.env_pods.within(meta.namespace).get(meta.name)
        except OutsideError as error:
            raise _failed(error) from error
        if found is None or found.metadata.uid != meta.uid:
            raise StepFailed(Trouble.API_UNAVAILABLE, "the pod is gone, the informer's cache does not show it yet")
        return found

    async def _read(self, namespace: str, source: VariableSource, keys: frozenset[str] | None) -> Read:
        """Read one object of the Pod's namespace."""
        api = self.ctx.api
        if namespace in {self.ctx.namespace, self.ctx.logins_namespace}:
            return Unread(why=f"namespace {namespace} is the provider's; move the pod to another one")
        try:
            if source.kind == "secret":
                secret = await api.secrets.within(namespace).get(source.name)
                return Unread(missing=True) if secret is None else content_of(secret.data, keys)
            config_map = await api.config_maps.within(namespace).get(source.name)
            return Unread(missing=True) if config_map is None else content_of(config_map.data, keys)
        except Forbidden:
            return Unread(
                why="the provider may not read it; allow it: "
                f"kubectl -n {namespace} create rolebinding vkprovider-parameters "
                f"--clusterrole=vkprovider-parameter-reader --serviceaccount={self.ctx.namespace}:vkprovider"
            )
        except Unavailable as error:
            raise _failed(error) from error
        except OutsideError as error:
            return Unread(why=error.message)


def withheld(error: OutsideError) -> OutsideError:
    """Return a worker's refusal without its text, which may quote the value of a Secret."""
    if not error.status or isinstance(error, Unauthorized):
        return error  # there was no answer, or one to the login: nothing of the import is quoted
    text = (
        f"the worker answered {error.status} to the import; its text is withheld, because the configurations hold "
        "values of Secrets: look into the worker's own logs, or import the lab without them"
    )
    if isinstance(error, Throttled):
        return Throttled(text, status=error.status, after_s=error.after_s)
    return Unavailable(text, status=error.status) if isinstance(error, Unavailable) else from_status(error.status, text)


def withheld_warnings(number: int) -> str:
    """Return the substitute for the warnings of an import, which may quote the value of a Secret."""
    return (
        f"{count(number, 'warning')}, withheld because the configurations hold values of Secrets: import the lab "
        "without them to see the text"
    )


def unexamined(worker: Worker) -> InputError:
    """Return why no lablet with ports may begin: a lab that no claim names may have any of them."""
    if worker.seen.silent_because:
        return InputError(Trouble.WORKER_UNREACHABLE, worker.seen.silent_because)
    text = f"the labs on worker {worker.name} are being looked at: ports of those that no claim names go to no lablet"
    return InputError(Trouble.WORKER_NOT_READY, text)


def _failed(error: OutsideError) -> StepFailed:
    fault = api_fault(error)
    return StepFailed(fault.reason, fault.message)


def _fault(text: str) -> InputError:
    return InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, text)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers the facts of lablets.

    Attributes:
        lablets: All lablets of this replica, by Pod UID.
        definitions: By name.
        contents: By digest.
        slices: The EndpointSlices of exposed lablets, by `namespace/name`.
        boot_timeouts: How long CML waits for a device to boot, by worker and node definition.
        renewals: The digest of the content that a warm lablet is to take up now, by Pod UID.
    """

    ctx: Context
    lablets: Mapping[str, Lablet]
    definitions: Mapping[str, Definition]
    contents: Mapping[str, Content]
    sessions: Sessions
    slices: Mapping[str, EndpointSlice]
    boot_timeouts: Mapping[str, Mapping[str, int]]
    renewals: Mapping[str, str]

    def gather(self, lablet: Lablet, worker: Worker) -> Facts:
        """Return the facts about one lablet."""
        memory, pod, claim = lablet.memory, lablet.pod, worker.claims.claims.get(lablet.uid)
        refusal = None
        if claim is None and pod is not None and pod.metadata.deletion_timestamp is None and not pod.terminal:
            refusal = self._refusal(pod, worker)
        presence: Presence = Presence.UNKNOWN
        devices: tuple[DeviceFact, ...] = ()
        if claim is not None and claim.lab_id:
            presence, devices = lab_seen(memory, *worker.seen.look(claim.lab_id, memory.acted_at))
        inputs = inputs_of(pod.metadata) if pod is not None else NOTHING
        delivery = NO_DELIVERY
        if claim is not None:
            delivery = self.sessions.delivery(claim, inputs, archive_failed=memory.archive_failed)
        unsaved = worker.claims.fault_of(lablet.uid)
        return Facts(
            pod=pod,
            claim=claim,
            memory=memory,
            claim_saved=worker.claims.saved(lablet.uid),
            unsaved_because=unsaved.fault if unsaved is not None else None,
            gone_confirmed=memory.gone_confirmed or lablet.removal_seen,
            unexamined=not worker.claims.complete,
            refusal=refusal,
            presence=presence,
            devices=devices,
            observed_at=worker.seen.devices_at,
            silent=worker.seen.silent_because,
            worker_time=worker.labs.time(),
            extracted=memory.extracted or worker.labs.immediate,
            patience=self._patience(claim, worker) if claim is not None and claim.lab_id else NO_PATIENCE,
            renewal=self.renewals.get(lablet.uid, ""),
            inputs=inputs,
            delivery=delivery,
            exposing=self._exposing(claim, worker) if claim is not None else NOT_EXPOSED,
            now_unix=self.ctx.now_unix,
            sure=self.ctx.is_sure(),
        )

    def _patience(self, claim: Claim, worker: Worker) -> StartPatience:
        definition, content = self.definitions.get(claim.definition), self.contents.get(claim.digest)
        return StartPatience(
            definition.boot_timeout_s if definition is not None else None,
            self.boot_timeouts.get(worker.name, {}),
            content.topology.cpu_limit if content is not None else 100,
            worker.claims.starts.get(claim.digest, 0),
        )

    def _exposing(self, claim: Claim, worker: Worker) -> Exposing:
        definition = self.definitions.get(claim.definition)
        expose = definition.expose if definition is not None else None
        found = slice_of(self.slices, self.ctx.namespace, claim.pod_uid)
        wanted, lds = self._wanted(definition, claim, worker), expose is not None and expose.lds
        if found is None:
            return Exposing(wanted, lds=lds)
        seen, answer = read_slice(found)
        return Exposing(wanted, seen, found.metadata.uid, answer, lds)

    def _wanted(self, definition: Definition | None, claim: Claim, worker: Worker) -> Exposure | Fault | NoSlice:
        """Return the slice that should stand, or why there is none."""
        if definition is None:
            return NoSlice.UNKNOWN
        content, expose, ip = self.contents.get(claim.digest), definition.expose, worker.seen.ip
        if expose is None or (content is not None and not claim.ports):
            return NoSlice.UNWANTED
        if content is None or claim.ports_fault is not None or not is_ip(ip):
            return NoSlice.UNKNOWN
        fault = address_fault(worker.name, ip)
        if fault is not None:
            return fault
        wanted = wanted_of(expose, claim, content.topology.template, worker=worker.name, address=ip)
        return wanted if wanted is not None else NoSlice.UNWANTED

    def _refusal(self, pod: Pod, worker: Worker) -> InputError | None:
        """Return why a Pod without a claim may not begin."""
        try:
            content = intent.resolve(pod, self.definitions, environment=worker.spec.environment)
            if (fault := worker.refusal or worker.claims.refused.get(pod.metadata.uid)) is not None:
                return fault
            if worker.capacity is None:
                return InputError(Trouble.WORKER_NOT_READY, f"worker {worker.name} is not known well enough yet")
            if not worker.lab_index.examined and content.topology.template.slots:
                return unexamined(worker)
        except InputError as refusal:
            return refusal
        taken = Resources()
        for digest, lablets in worker.claims.digests.items():
            if lablets and (other := self.contents.get(digest)) is not None:
                taken = taken.plus(other.need.times(lablets))
        full = intent.shortage(
            content.need, taken, worker.capacity.total, lablets=len(worker.claims.claims), pods=worker.capacity.labs
        )
        if full is not None and any(self._is_leaving(uid) for uid in worker.claims.claims):
            return InputError(
                Progress.WAITING_FOR_RELEASE, "the lab of an earlier lablet is being removed from the worker"
            )
        return full

    def _is_leaving(self, uid: str) -> bool:
        lablet = self.lablets.get(uid)
        return lablet is not None and (lablet.memory.killing or lablet.pod is None)
