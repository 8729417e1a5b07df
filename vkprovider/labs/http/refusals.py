"""What the page asks for and answers: rights on lablets, which are no resource, and kinds of refusals."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.rights import Right


class LabUnknown(Refused):
    """No lablet has the id."""

    status_code = 404
    remedy = "Take the id of a lab, or the UID of a lablet's Pod."


class LabUnavailable(Refused):
    """The lab cannot be fetched now."""

    status_code = 503
    remedy = "Try again: the worker does not give the lab now, or it is being imported."
    retry_s = 5


class ArchiveUnknown(Refused):
    """Nothing is kept in the namespace under the id."""

    status_code = 404
    remedy = "Take an id of the list; what learners left is dropped after a week, and with their namespace."


class ArchiveUnavailable(Refused):
    """The archive cannot be read now."""

    status_code = 503
    remedy = "Try again: the API server does not give the replica what it has kept."
    retry_s = 5


class ListExpired(Refused):
    """The list cannot be continued."""

    status_code = 410
    remedy = "List again from the beginning, without `continue`."


class NoSession(Refused):
    """The lablet has no session to log in to."""

    status_code = 409
    remedy = (
        "Wait until the lablet has a session: it is warm, its session is being made or is archived already, or "
        "there is no Lab Delivery System."
    )


class LoginUnavailable(Refused):
    """The login URL cannot be fetched now."""

    status_code = 503
    remedy = "Try again: the Lab Delivery System does not answer."
    retry_s = 5


class ObjectInvalid(Refused):
    """An object that the answer depends on is invalid; the word is the reason that the object shows."""

    status_code = 503
    remedy = "Mend the object that the message names, as its reason asks for."

    def __init__(self, error: InputError) -> None:
        self._word = error.reason
        super().__init__(error.message)

    @property
    def word(self) -> str:
        """The reason of the object, such as `ClaimStoreInvalid`."""
        return self._word


class EventsDisabled(Refused):
    """No secret is set."""

    status_code = 403
    remedy = "Set `VKPROVIDER_EVENTS_SECRET`."


class SecretMissing(Refused):
    """The sender of an event proves nothing."""

    status_code = 401
    remedy = "Send the events' secret, or sign the body."
    realm = "vkprovider events"


class SecretWrong(Refused):
    """The sender of an event has another secret."""

    status_code = 401
    remedy = "Send one of `VKPROVIDER_EVENTS_SECRET`."
    realm = "vkprovider events"


class SignatureWrong(Refused):
    """The body is not signed with a secret of ours."""

    status_code = 401
    remedy = "Sign this body with one of these secrets."
    realm = "vkprovider events"


class SignatureInsufficient(Refused):
    """The signature does not cover the event."""

    status_code = 401
    remedy = "Send a signed event structured, or use the bearer token."
    realm = "vkprovider events"


class EventInvalid(Refused):
    """The event violates the specification of CloudEvents, or names no session."""

    status_code = 400
    remedy = "Correct the attribute that the message names."


class MediaTypeUnsupported(Refused):
    """The body is no event in a supported format."""

    status_code = 415
    remedy = "Send JSON, structured, batched, or with headers `ce-…`."


class EventTooLarge(Refused):
    """The body is too large."""

    status_code = 413
    remedy = "Send smaller batches."


class EventIncomplete(Refused):
    """The body does not end in time."""

    status_code = 408
    remedy = "Send the body without pauses; the message says how long it may take."


class TryAgain(Refused):
    """The event cannot be noted now, or its session is not known yet."""

    status_code = 503
    remedy = "Send it again, as the outcome says."
    retry_s = 5


class AgentsDisabled(Refused):
    """No token of agents is set."""

    status_code = 403
    remedy = "Set `VKPROVIDER_TUNNEL_HTTP_TOKENS`."


class AgentInvalid(Refused):
    """The request names no agent."""

    status_code = 400
    remedy = "Ask with `?agent=NAME/BOOT`, as an agent does."


class AgentUnknown(Refused):
    """The agent does not prove its name."""

    status_code = 401
    remedy = "Give the agent a token of its name, one without a name, or a certificate."
    realm = "vkprovider agents"


class TooManyAgents(Refused):
    """There is no room for the agent."""

    status_code = 503
    remedy = "Try again; the message says which limit is reached, or that the replica ends."
    retry_s = 10


Age = Callable[[str], Awaitable[str]]
"""Returns when a namespace was created, as Kubernetes writes it; empty if it does not exist."""


async def begun(age: Age, namespace: str) -> float:
    """Return the creation time of a namespace, 0 without one: rights in it are not those in one that is gone."""
    created = await age(namespace)
    return datetime.fromisoformat(created).timestamp() if created else 0.0


def lablet_right(subresource: str, namespace: str, name: str = "") -> Right:
    """Return the right to get `lablets/<subresource>` of our group; without a name, of all in a namespace.

    Its text leaves the Pod out: a user who lacks it need not learn whose lab it is.
    """
    return Right(
        "get",
        f"lablets/{subresource}",
        namespace,
        name,
        wellknown.GROUP,
        wellknown.VERSION,
        role=f"{wellknown.MANAGER}-{subresource}",
        of="the Pod that has this lab" if name else "the namespace",
    )


def path_right(path: str, verb: str) -> Right:
    """Return the right on a path of our page, as a non-resource URL."""
    return Right(verb, path, role=f"{wellknown.MANAGER}-{'view' if verb == 'get' else 'worker-admin'}")
