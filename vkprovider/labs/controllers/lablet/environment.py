"""Reads what the variables of a lablet's containers refer to, and resolves them: for the import of its lab alone.

Nothing of it is kept, neither values nor variables: a Pod with variables is read again for each import, and a ConfigMap
or Secret is read by its name, never listed or watched. The right to do so is given namespace by namespace; a lablet
whose namespace did not give it says so and waits. A lablet that waits tries again with the back-off of its step.
"""

from dataclasses import dataclass

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.lablet.decisions.stepfault import api_fault
from vkprovider.labs.pure.lablet.environment.downward import Placement
from vkprovider.labs.pure.lablet.environment.resolve import NO_ENVIRONMENT, Environment, resolve
from vkprovider.labs.pure.lablet.environment.sources import (
    CHARS_MAX,
    SOURCES_MAX,
    Content,
    Read,
    Source,
    Unread,
    content_of,
    sources_of,
)
from vkprovider.labs.pure.topology.resources import Resources
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
from vkprovider.platform.objects import ENV, Pod
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.wording import count


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
        read, room = dict[Source, Read](), CHARS_MAX
        for source, keys in wanted.items():
            read[source] = found = await self._read(pod.metadata.namespace, source, keys)
            room -= sum(map(len, found.values.values())) if isinstance(found, Content) else 0
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

    async def _read(self, namespace: str, source: Source, keys: frozenset[str] | None) -> Read:
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


def _failed(error: OutsideError) -> StepFailed:
    fault = api_fault(error)
    return StepFailed(fault.reason, fault.message)


def _fault(text: str) -> InputError:
    return InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, text)
