"""The provider's page, which a portal asks what learners have left: whether it answers, and takes whom it asks for."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Secret
from vkprovider.portal.checks import doors
from vkprovider.portal.checks.services import EgressPolicy, ServiceAddress, ServiceSlice, is_closed
from vkprovider.portal.pure import portalnames
from vkprovider.portal.settings import PortalSettings

AUDIENCES: Final = "VKPROVIDER_HTTP_AUDIENCES"
_OWN_AUDIENCE: Final = "vkprovider.io"
_AUTHORITY: Final = "ca.crt"
_NAMED_MAX: Final = 5


def check_page_answers(page: ServiceAddress, *, exists: bool, slices: Iterable[ServiceSlice]) -> list[Finding]:
    """Check that the page is there.

    Args:
        page: As the setting names it; one outside of the cluster is not asked from here.
        exists: Whether its Service does.
        slices: Those of the Service.
    """
    if not page.name or any(each.is_ready for each in slices):
        return []
    about, reason = f"Service/{page.namespace}/{page.name}", DoctorReason.PAGE_AWAY
    why = "no Pod behind it is ready" if exists else "there is no such Service"
    text = f"VKPROVIDER_PORTAL_PROVIDER_URL names it, and {why}: instructors see nothing of lablets that are gone"
    return [fault(about, reason, text, reason.remedy)]


def check_page_open(namespace: str, page: ServiceAddress, policies: Sequence[EgressPolicy]) -> list[Finding]:
    """Check that NetworkPolicies let a portal connect to the page.

    Args:
        namespace: The portal's.
        page: The page.
        policies: Those of that namespace; without one everything is open.
    """
    if not is_closed(page.port, policies):
        return []
    reason = DoctorReason.PAGE_CLOSED
    text = f"no NetworkPolicy lets the portal connect to port {page.port}, where the provider's page is"
    return [note(f"NetworkPolicy/{namespace}/{portalnames.PORTAL_PROGRAM}", reason, text, reason.remedy)]


class MountedSecret(NamedTuple):
    """A Secret that a program mounts, if there is one of that name.

    Attributes:
        name: As the Deployment names it.
        secret: None while there is none.
    """

    name: str
    secret: Secret | None


def check_page_known(namespace: str, settings: PortalSettings) -> list[Finding]:
    """Check that the portal knows the page.

    Args:
        namespace: The portal's.
        settings: Its settings.
    """
    if settings.provider_url:
        return []
    reason, about = DoctorReason.PAGE_UNSET, f"ConfigMap/{namespace}/{doors.SETTINGS}"
    text = "VKPROVIDER_PORTAL_PROVIDER_URL is not set: instructors see nothing of lablets that are gone, and no lab "
    return [note(about, reason, f"{text}begins from saved work", reason.remedy)]


def check_page_trusted(
    page: ServiceAddress, host: str, served: MountedSecret, trusted: MountedSecret, now: datetime
) -> list[Finding]:
    """Check that the portal can trust the page.

    Args:
        page: The page; nothing is known of one outside of the cluster.
        host: The name by which the portal asks it.
        served: The Secret with the certificate of the page.
        trusted: The Secret whose `ca.crt` the portal trusts, usually the same; without that key the system's CAs.
        now: The time, with a zone.
    """
    if not page.name or not served.name:
        return []
    reason, about = DoctorReason.PAGE_UNTRUSTED, f"Secret/{page.namespace}/{served.name}"
    create = f"kubectl -n {page.namespace} create secret generic {served.name} --type=kubernetes.io/tls"
    create += " --from-file=tls.crt --from-file=tls.key --from-file=ca.crt"
    if served.secret is None:
        text = "the provider's page has a certificate that each replica has made itself, which no portal trusts"
        return [note(about, reason, text, create)]
    remedy = f"{create} --dry-run=client -o yaml | kubectl apply -f -"
    pair = doors.read_pair(served.secret)
    found = doors.check_pair(about, reason, pair, now, "the portal cannot verify the provider's page", remedy)
    if pair is not None and not pair.is_for(host):
        text = (
            f"the portal asks the page as {host}, and the certificate is for {listed(sorted(pair.names), _NAMED_MAX)}"
        )
        found.append(note(about, reason, text, remedy))
    if trusted.name and (trusted.secret is None or not trusted.secret.data.get(_AUTHORITY)):
        text = f"it has no {_AUTHORITY}: of the provider's page the portal trusts the CAs of the system alone"
        add = f'{{\\"data\\":{{\\"{_AUTHORITY}\\":\\"$(base64 <{_AUTHORITY} | tr -d \'\\n\')\\"}}}}'
        command = (
            f'patch secret {trusted.name} --type=merge -p "{add}"'
            if trusted.secret is not None
            else f"create secret generic {trusted.name} --from-file={_AUTHORITY}"
        )
        where = f"Secret/{page.namespace}/{trusted.name}"
        found.append(note(where, reason, text, f"kubectl -n {page.namespace} {command}"))
    return found


def check_page_takes(page: ServiceAddress, audiences: str) -> list[Finding]:
    """Check that the page trusts the tokens that the portal passes on.

    Args:
        page: The page; nothing is known of one outside of the cluster.
        audiences: The setting of the provider, as it is set; "" if it is not.
    """
    if not page.name or set((audiences or _OWN_AUDIENCE).split()) != {_OWN_AUDIENCE}:
        return []
    about = f"ConfigMap/{page.namespace}/vkprovider-settings"
    text = f"{AUDIENCES} has not the API server's audience: the page refuses the tokens of those who ask the portal"
    return [note(about, DoctorReason.PAGE_REFUSES, text, DoctorReason.PAGE_REFUSES.remedy)]
