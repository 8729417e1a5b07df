"""The Lab Delivery System's part of a lablet, as data: the session in its claim, the observed rest."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vkprovider.platform.messages import Fault


class Session(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A learner's session, as stored in the lablet's claim. It is written before the session is requested.

    Attributes:
        deployment: The LDS deployment that serves it.
        key: The client key of its creation: requesting it twice creates one session.
        username: The learner.
        slot_start: When the timeslot begins (Unix seconds); without a request, when the claim recorded the session.
        slot_end: When it ends, as the LDS was last told; without a request, after VKPROVIDER_TIMESLOT_SECONDS.
        id: Known once it is created.
        base_url: The deployment's, at that time.
        login_url: Where the learner logs in, without the query, which is a secret.
        ready_at: When its devices were set (Unix seconds), as the next ones; 0 before.
        started_at: When the learner logged in.
        ended_at: When it ended.
        archived_at: When it was archived.
    """

    deployment: str
    key: str
    username: str
    slot_start: int = 0
    slot_end: int = 0
    id: str = ""
    base_url: str = ""
    login_url: str = ""
    ready_at: int = msgspec.field(name="ready", default=0)
    started_at: int = msgspec.field(name="started", default=0)
    ended_at: int = msgspec.field(name="ended", default=0)
    archived_at: int = msgspec.field(name="archived", default=0)


def client_key(pod_uid: str, number: int) -> str:
    """Return the client key of a lablet's session; `number` counts the lablet's sessions from 1."""
    return pod_uid if number == 1 else f"{pod_uid}.{number}"


class Terms(msgspec.Struct, frozen=True, gc=False):
    """How a definition's lablets are delivered.

    Attributes:
        enabled: Whether a session is wanted where an LDS is configured.
        affinity: The LDS deployment to prefer; None for none.
        form: The form's qualified name in the content system.
        device_secret: The Secret with the devices' credentials, in the namespace of logins; "" for none.
    """

    enabled: bool = True
    affinity: str | None = None
    form: str = ""
    device_secret: str = ""


NO_TERMS: Final = Terms()


def terms_of(name: str, spec: Mapping[str, Any]) -> Terms:
    """Read the terms from a LabletDefinition's spec, which may be invalid: an unreadable field counts as unset."""
    lds = spec.get("lds")
    lds = lds if isinstance(lds, dict) else {}
    affinity = lds.get("affinity")
    return Terms(
        enabled=lds.get("enabled") is not False,
        affinity=affinity if isinstance(affinity, str) and affinity else None,
        form=str(spec.get("formQualifiedName") or name),
        device_secret=str(spec.get("deviceSecretName") or ""),
    )


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """What is known of the LDS for one lablet, beyond its claim.

    Attributes:
        wanted: An LDS is configured, and the definition wants a session.
        deployment: Where the next session would be created.
        warning: Why that is not the deployment that the definition prefers.
        refusal: Why no deployment can serve it.
        slot_s: Seconds of a timeslot whose end the Pod leaves open.
        started_at, ended_at: When the session started and ended, according to the LDS (Unix seconds); 0 if unknown.
        grader: A grader is configured.
        archive_failed: Archiving failed; it is retried when the lab is gone.
    """

    wanted: bool = False
    deployment: str = ""
    warning: str = ""
    refusal: Fault | None = None
    slot_s: int = 86400
    started_at: int = 0
    ended_at: int = 0
    grader: bool = False
    archive_failed: bool = False


NO_DELIVERY: Final = Delivery()
