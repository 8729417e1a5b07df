"""What keeps people out of a portal: its settings, the key of cookies, certificate, address, bindings, usernames."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import ValidationError

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Metadata, RoleBinding, Secret
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rights import User
from vkprovider.portal.pure import portalnames
from vkprovider.portal.settings import PortalSettings

SETTINGS: Final = f"{portalnames.PORTAL_PROGRAM}-settings"
"""The ConfigMap, and the Secret, that the portal reads."""
CERTIFICATE: Final = f"{portalnames.PORTAL_PROGRAM}-tls"
"""The Secret with its certificate."""
KEY: Final = "VKPROVIDER_PORTAL_COOKIE_KEY"
USER_ROLE: Final = "vkprovider-portal-user"
"""The ClusterRole of those who may have a lab."""
_PREFIX: Final = "VKPROVIDER_PORTAL_USERNAME_PREFIX"
_SOON: Final = timedelta(days=14)
_NAMED_MAX: Final = 5


def restart(namespace: str) -> str:
    """Return the command after which the portal has its new settings."""
    return f"kubectl -n {namespace} rollout restart deployment/{portalnames.PORTAL_PROGRAM}"


def parse(variables: Mapping[str, str]) -> PortalSettings | str:
    """Return the settings of variables, or why they cannot be used; no value of a secret is in that."""
    try:
        return PortalSettings.model_validate({name: value for name, value in variables.items() if value})
    except ValidationError as error:
        texts = [
            ": ".join([*map(str, each["loc"]), each["msg"].removeprefix("Value error, ")]) for each in error.errors()
        ]
        return "; ".join(texts)


def check_settings(namespace: str, problem: str) -> list[Finding]:
    """Report settings with which no replica starts.

    Args:
        namespace: The portal's.
        problem: What is wrong with them.
    """
    where = f"ConfigMap/{namespace}/{SETTINGS}"
    remedy = f"Correct it in the ConfigMap or the Secret {SETTINGS}; then {restart(namespace)}"
    return [fault(where, StartReason.SETTING_INVALID, f"no replica of the portal starts: {problem}", remedy)]


def check_key(namespace: str, settings: PortalSettings, *, has_secret: bool) -> list[Finding]:
    """Check that people can log in with a browser.

    Args:
        namespace: The portal's.
        settings: Its settings.
        has_secret: Whether there is a Secret with settings.
    """
    if settings.callers == "headers" or settings.cookie_key is not None:
        return []
    made = "$(openssl rand -base64 32)"
    command = (
        f'patch secret {SETTINGS} --type=merge -p "{{\\"stringData\\":{{\\"{KEY}\\":\\"{made}\\"}}}}"'
        if has_secret
        else f'create secret generic {SETTINGS} --from-literal={KEY}="{made}"'
    )
    about, reason = f"Secret/{namespace}/{SETTINGS}", DoctorReason.COOKIE_KEY_MISSING
    remedy = f"kubectl -n {namespace} {command}; then {restart(namespace)}"
    return [fault(about, reason, f"{KEY} is not set: nobody can log in to the portal with a browser", remedy)]


class PairData(NamedTuple):
    """A certificate with a key.

    Attributes:
        until: When it ends.
        names: DNS names that it is for.
        fits: Whether the key is that of the certificate.
    """

    until: datetime
    names: frozenset[str]
    fits: bool

    def is_for(self, host: str) -> bool:
        """Return whether a client that asks for this host accepts it."""
        return bool(self.names & {host, f"*.{host.partition('.')[2]}"})


def read_pair(secret: Secret) -> PairData | None:
    """Return what a Secret says of its certificate; None if it has none that can be read."""
    try:
        certificate = x509.load_pem_x509_certificates(secret.data["tls.crt"])[0]
        key = load_pem_private_key(secret.data["tls.key"], None).public_key()
    except (KeyError, ValueError, TypeError, IndexError):
        return None
    names = [each.value for each in certificate.extensions if isinstance(each.value, x509.SubjectAlternativeName)]
    said = frozenset(name for each in names for name in each.get_values_for_type(x509.DNSName))
    return PairData(certificate.not_valid_after_utc, said, certificate.public_key() == key)


def check_pair(
    about: str, reason: DoctorReason, pair: PairData | None, now: datetime, consequence: str, remedy: str
) -> list[Finding]:
    """Check that a certificate can be served, now and for two weeks.

    Args:
        about: Its Secret, as findings name it.
        reason: The reason of what is found.
        pair: What the Secret says.
        now: The time, with a zone.
        consequence: What happens with one that cannot be read.
        remedy: The command that writes another one.
    """
    if pair is None or not pair.fits:
        what = "has no tls.crt and tls.key that can be read" if pair is None else "has a key of another certificate"
        return [fault(about, reason, f"it {what}: {consequence}", remedy)]
    until = f"{pair.until:%Y-%m-%d %H:%M} UTC"
    if pair.until <= now:
        return [fault(about, reason, f"the certificate ended at {until}", remedy)]
    if pair.until - now < _SOON:
        return [note(about, reason, f"the certificate ends at {until}", remedy)]
    return []


def check_certificate(namespace: str, secret: Secret | None, now: datetime, *, hub: bool) -> list[Finding]:
    """Check the certificate of a portal.

    Args:
        namespace: The portal's.
        secret: The one with the certificate.
        now: The time, with a zone.
        hub: Whether a hub reaches the portal by the name of its Service.
    """
    about = f"Secret/{namespace}/{CERTIFICATE}"
    create = f"create secret tls {CERTIFICATE} --cert=tls.crt --key=tls.key"
    if secret is None:
        text = "each replica serves a certificate that it has made itself, which no browser, hub or proxy trusts"
        return [note(about, DoctorReason.CERTIFICATE_SELF_MADE, text, f"kubectl -n {namespace} {create}")]
    remedy = f"kubectl -n {namespace} {create} --dry-run=client -o yaml | kubectl apply -f -"
    reason, pair = DoctorReason.CERTIFICATE_UNUSABLE, read_pair(secret)
    found = check_pair(about, reason, pair, now, "no replica of the portal answers", remedy)
    if found or pair is None:
        return found
    service = f"{portalnames.PORTAL_PROGRAM}.{namespace}"
    if hub and not pair.names & {service, f"{service}.svc", f"*.{namespace}", f"*.{namespace}.svc"}:
        text = f"the hub reaches the portal as {service}, and the certificate is for {listed(sorted(pair.names), 5)}"
        return [note(about, reason, text, remedy)]
    return []


class _ServiceSpec(msgspec.Struct, frozen=True):
    type: str = ""


class _Balancer(msgspec.Struct, frozen=True):
    ingress: tuple[dict[str, object], ...] | None = None


class _BalancedStatus(msgspec.Struct, frozen=True, rename="camel"):
    load_balancer: _Balancer = _Balancer()


class DoorService(msgspec.Struct, frozen=True):
    """The Service of a portal."""

    metadata: Metadata
    spec: _ServiceSpec = _ServiceSpec()
    status: _BalancedStatus = _BalancedStatus()


class DoorRoute(NamedTuple):
    """What leads from outside to the Service of a portal.

    Attributes:
        about: The object, as findings name it.
        pending: Whether it has no address yet.
    """

    about: str
    pending: bool


def check_address(namespace: str, service: DoorService | None, routes: Sequence[DoorRoute]) -> list[Finding]:
    """Check that something leads to a portal.

    Args:
        namespace: The portal's.
        service: Its Service.
        routes: Ingresses and routes that name it.
    """
    about = f"Service/{namespace}/{portalnames.PORTAL_PROGRAM}"
    if service is not None and service.spec.type == "LoadBalancer":
        routes = [*routes, DoorRoute(about, not service.status.load_balancer.ingress)]
    if not routes and (service is None or service.spec.type != "NodePort"):
        text = "no Ingress, HTTPRoute, TLSRoute or load balancer leads to it: only who may port-forward reaches it"
        return [note(about, DoctorReason.NO_ADDRESS, text, DoctorReason.NO_ADDRESS.remedy)]
    reason = DoctorReason.ADDRESS_PENDING
    if any(not each.pending for each in routes):
        return []
    return [note(each.about, reason, "it has no address yet", reason.remedy) for each in routes]


def check_callers(namespace: str, settings: PortalSettings, bindings: Iterable[RoleBinding]) -> list[Finding]:
    """Check that somebody may have a lab, under a name that the portal knows.

    Args:
        namespace: The portal's.
        settings: Its settings.
        bindings: Those of all namespaces and of the cluster.
    """
    bound = [each for each in bindings if each.role_ref.name == USER_ROLE]
    here = [each for each in bound if each.metadata.namespace in {"", namespace} and each.subjects]
    prefix = settings.username_prefix
    command = (
        f"kubectl -n {namespace} create rolebinding portal-users --clusterrole={USER_ROLE} "
        f"--group={prefix if prefix.endswith(':') and not prefix.startswith('system:') else ''}students"
    )
    if not here:
        elsewhere = sorted({each.metadata.namespace for each in bound})
        text = f"nobody is bound to {USER_ROLE} there, unless by a role of your own: no learner may have a lab"
        text += f"; bindings in {listed(elsewhere, _NAMED_MAX)} have no effect" if elsewhere else ""
        return [note(f"Namespace/{namespace}", DoctorReason.NOBODY_BOUND, text, command)]
    return [finding for each in here for finding in _check_prefix(namespace, prefix, each)]


def _check_prefix(namespace: str, prefix: str, binding: RoleBinding) -> list[Finding]:
    meta, subjects = binding.metadata, binding.subjects or ()
    about = f"RoleBinding/{meta.namespace}/{meta.name}" if meta.namespace else f"ClusterRoleBinding/{meta.name}"
    users = [each.name for each in subjects if each.kind == "User"]
    users += [User.of_account(s.namespace, s.name).username for s in subjects if s.kind == "ServiceAccount"]
    reason = DoctorReason.PREFIX_DIFFERS
    strangers = [each for each in users if portalnames.user_of(each, prefix) is None]
    if strangers:
        text = f"{_PREFIX} is {prefix}, and {listed(strangers, _NAMED_MAX)} have no lab: their names begin otherwise"
        return [note(about, reason, text, f"Bind names that begin with {prefix}, or change {_PREFIX}")]
    groups = [each.name for each in subjects if each.kind == "Group"]
    heads = {name.partition(":")[0] for name in [*users, *groups] if ":" in name} - {"system"}
    if prefix or len(heads) != 1:
        return []
    head = f"{heads.pop()}:"
    whose = listed([*users, *groups], _NAMED_MAX)
    text = f"it names {whose}, and {_PREFIX} is empty: the lab of {head}alice is not the one of alice"
    remedy = (
        f"If usernames begin with {head}: set {_PREFIX} to it in the ConfigMap {SETTINGS}; then {restart(namespace)}"
    )
    return [note(about, reason, text, remedy)]
