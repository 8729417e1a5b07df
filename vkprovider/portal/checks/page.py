"""The provider's page, which a portal asks what learners have left: whether it answers, and takes whom it asks for."""

from collections.abc import Iterable, Sequence
from typing import Final

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.objects import Secret
from vkprovider.portal.checks.services import EgressPolicy, ServiceAddress, ServiceSlice, is_closed
from vkprovider.portal.pure import portalnames

SECRET: Final = "vkprovider-tls"  # noqa: S105 (its name)
"""The Secret with the certificate of the page; `ca.crt` in it is the portal's trust."""
AUDIENCES: Final = "VKPROVIDER_HTTP_AUDIENCES"
_OWN_AUDIENCE: Final = "vkprovider.io"


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


def check_page_trusted(page: ServiceAddress, secret: Secret | None, audiences: str) -> list[Finding]:
    """Check that the portal can trust the page, and the page the tokens that the portal passes on.

    Args:
        page: The page; nothing is known of one outside of the cluster.
        secret: The one with its certificate.
        audiences: The setting of the provider, as it is set; "" if it is not.
    """
    if not page.name:
        return []
    reason, found = DoctorReason.PAGE_UNTRUSTED, []
    if secret is None:
        text = "the provider's page has a certificate that each replica has made itself, which no portal trusts"
        create = f"kubectl -n {page.namespace} create secret generic {SECRET} --type=kubernetes.io/tls"
        remedy = f"{create} --from-file=tls.crt --from-file=tls.key --from-file=ca.crt"
        found.append(note(f"Secret/{page.namespace}/{SECRET}", reason, text, remedy))
    if set((audiences or _OWN_AUDIENCE).split()) == {_OWN_AUDIENCE}:
        about = f"ConfigMap/{page.namespace}/vkprovider-settings"
        text = f"{AUDIENCES} has not the API server's audience: the page refuses the tokens of those who ask the portal"
        found.append(note(about, DoctorReason.PAGE_REFUSES, text, DoctorReason.PAGE_REFUSES.remedy))
    return found
