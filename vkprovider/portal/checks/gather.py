"""Reads what belongs to a portal, and passes it to the checks."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from vkprovider.doctor.findings import Finding
from vkprovider.doctor.programs import (
    ProgramWorkload,
    bindings_of,
    check_program,
    deployment,
    settings_of,
    variables_of,
)
from vkprovider.doctor.reading import UserReading
from vkprovider.platform import wellknown
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import ConfigMap, CustomResource, Metadata, Node, RoleBinding, Secret
from vkprovider.portal.checks import benches, doors, hub, offer, page, road
from vkprovider.portal.checks.doors import DoorRoute, DoorService
from vkprovider.portal.checks.page import MountedSecret
from vkprovider.portal.checks.services import EgressPolicy, ServiceAddress, ServiceSlice, may_be_outside, service_of
from vkprovider.portal.pure import portalnames
from vkprovider.portal.settings import PortalSettings

_PORTAL: Final = portalnames.PORTAL_PROGRAM
_INGRESSES: Final = "/apis/networking.k8s.io/v1/ingresses"
_ROUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "HTTPRoute": ("/apis/gateway.networking.k8s.io/v1/httproutes",),
    "TLSRoute": (
        "/apis/gateway.networking.k8s.io/v1/tlsroutes",
        "/apis/gateway.networking.k8s.io/v1alpha3/tlsroutes",
        "/apis/gateway.networking.k8s.io/v1alpha2/tlsroutes",
    ),
}
"""Where routes of the Gateway API are; a version that is not served has none."""


class _DoorObject(msgspec.Struct, frozen=True):
    """An Ingress or a route."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


async def check_portal(
    reading: UserReading,
    namespace: str,
    definitions: Sequence[CustomResource],
    boot_s: Mapping[str, int],
    now: datetime,
) -> list[Finding]:
    """Check the portal, if one is installed.

    Args:
        reading: Reads the cluster.
        namespace: The provider's, where the portal is.
        definitions: Those of the cluster.
        boot_s: How long a device may take to boot, by definition.
        now: The time by the API server's clock.
    """
    program = await deployment(reading, namespace, _PORTAL)
    if program is None:
        return []
    found = await check_program(reading, program, "Deployment", "nobody gets a page or a lab")
    about, core = f"Deployment/{namespace}/{_PORTAL}", f"/api/v1/namespaces/{namespace}"
    secrets = f"Secret/{namespace}"
    given = await reading.read(f"{core}/secrets/{doors.SETTINGS}", Secret, secrets)
    tls = await reading.read(f"{core}/secrets/{doors.CERTIFICATE}", Secret, secrets)
    variables = {**variables_of(given), **await settings_of(reading, program, about)}
    found += await _check_offer(reading, namespace, variables, definitions, boot_s)
    if reading.failed(secrets):
        return found
    found += await _check_benches(reading, namespace, variables)
    settings = doors.parse(variables)
    if isinstance(settings, str):
        return [*found, *doors.check_settings(namespace, settings)]
    found += doors.check_key(namespace, settings, has_secret=given is not None)
    found += doors.check_certificate(namespace, tls, now, hub=bool(settings.hub_api_url))
    for address in settings.addresses:
        found += road.check_road(namespace, address, await road.ask_road(address))
    bindings = await bindings_of(reading)
    if not reading.failed("RoleBinding"):
        found += doors.check_callers(namespace, settings, bindings)
    found += page.check_page_known(namespace, settings)
    if settings.provider_url:
        found += await _check_page(reading, program, settings, now)
    if settings.hub_api_url:
        return found + await _check_hub(reading, namespace, settings, bindings)
    service = await reading.read(f"{core}/services/{_PORTAL}", DoorService, about)
    return found + doors.check_address(namespace, service, await _routes(reading, namespace))


async def _check_offer(
    reading: UserReading,
    namespace: str,
    variables: Mapping[str, str],
    definitions: Sequence[CustomResource],
    boot_s: Mapping[str, int],
) -> list[Finding]:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{offer.CONFIG}"
    files = await reading.read(path, ConfigMap, f"ConfigMap/{namespace}/{offer.CONFIG}")
    config = offer.read_config(variables.get("VKPROVIDER_PORTAL_CONFIG", ""), files)
    if isinstance(config, str):
        return offer.check_config(namespace, config)
    menu = offer.menu_for(definitions, config)
    waits = {name: seconds for name, seconds in boot_s.items() if name in menu.definitions}
    return [
        *offer.check_menu(namespace, definitions, menu),
        *offer.check_quotas(namespace, menu),
        *offer.check_wait(namespace, variables, waits),
    ]


async def _check_benches(reading: UserReading, namespace: str, variables: Mapping[str, str]) -> list[Finding]:
    """Check workbenches, where any are described."""
    files = await reading.glance(f"/api/v1/namespaces/{namespace}/configmaps/{offer.CONFIG}", ConfigMap)
    config = offer.read_config(variables.get("VKPROVIDER_PORTAL_CONFIG", ""), files)
    settings = doors.parse(variables)
    if isinstance(config, str) or isinstance(settings, str) or not config.workbenches:
        return []
    policy = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{benches.POLICY}"
    nodes = benches.asked(await reading.list("/api/v1/nodes", Node, "Node"))
    kubelets = {
        name: await reading.glance(f"/api/v1/nodes/{name}/proxy/configz", benches.KubeletConfig) for name in nodes
    }
    return [
        *benches.check_policy(config, await reading.glance(policy, benches.ConfinePolicy)),
        *benches.check_hosts(namespace, settings),
        *benches.check_pids(kubelets),
    ]


async def _check_hub(
    reading: UserReading, namespace: str, settings: PortalSettings, bindings: Sequence[RoleBinding]
) -> list[Finding]:
    named = await _address_of(reading, settings.hub_api_url, namespace)
    found = hub.check_hub_bound(namespace, named, bindings)
    found += hub.check_hub_open(namespace, named, await _policies(reading, namespace))
    state = await _state_of(reading, named)
    return found if state is None else found + hub.check_hub_answers(named, exists=state[0], slices=state[1])


async def _check_page(
    reading: UserReading, portal: ProgramWorkload, settings: PortalSettings, now: datetime
) -> list[Finding]:
    namespace = portal.metadata.namespace
    named = await _address_of(reading, settings.provider_url, namespace)
    found = page.check_page_open(namespace, named, await _policies(reading, namespace))
    state = await _state_of(reading, named)
    if state is not None:
        found += page.check_page_answers(named, exists=state[0], slices=state[1])
    program = await deployment(reading, namespace, wellknown.MANAGER)
    if program is None:
        return found
    variables = await settings_of(reading, program, f"Deployment/{namespace}/{wellknown.MANAGER}")
    found += page.check_page_takes(named, variables.get(page.AUDIENCES, ""))
    served = await _mounted(reading, program, "tls")
    trusted = await _mounted(reading, portal, "provider")
    if reading.failed(f"Secret/{namespace}"):
        return found
    host = urlsplit(settings.provider_url).hostname or ""
    return found + page.check_page_trusted(named, host, served, trusted, now)


async def _mounted(reading: UserReading, program: ProgramWorkload, volume: str) -> MountedSecret:
    """Return the Secret of a volume, by the name that the Deployment has."""
    name, namespace = program.secret_of(volume), program.metadata.namespace
    if not name:
        return MountedSecret("", None)
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    return MountedSecret(name, await reading.read(path, Secret, f"Secret/{namespace}"))


async def _address_of(reading: UserReading, url: str, namespace: str) -> ServiceAddress:
    """Return the Service that a URL names; a host of two words may be a domain."""
    named = service_of(url, namespace)
    if not may_be_outside(url):
        return named
    about = f"Service/{named.namespace}/{named.name}"
    there = await reading.read(f"/api/v1/namespaces/{named.namespace}", PartialObject, about)
    return named if there is not None or reading.failed(about) else ServiceAddress("", "", named.port)


async def _policies(reading: UserReading, namespace: str) -> Sequence[EgressPolicy]:
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    return await reading.list(path, EgressPolicy, "NetworkPolicy")


async def _state_of(reading: UserReading, named: ServiceAddress) -> tuple[bool, Sequence[ServiceSlice]] | None:
    """Return whether a Service exists, with its EndpointSlices; None if it is outside, or that cannot be read."""
    if not named.name:
        return None
    about = f"Service/{named.namespace}/{named.name}"
    service = await reading.read(f"/api/v1/namespaces/{named.namespace}/services/{named.name}", DoorService, about)
    slices = await reading.list(
        f"/apis/discovery.k8s.io/v1/namespaces/{named.namespace}/endpointslices",
        ServiceSlice,
        about,
        {"labelSelector": f"kubernetes.io/service-name={named.name}"},
    )
    return None if reading.failed(about) else (service is not None, slices)


async def _routes(reading: UserReading, namespace: str) -> list[DoorRoute]:
    """Return what names the portal's Service."""
    found = []
    for each in await reading.list(_INGRESSES, _DoorObject, "Ingress"):
        if each.metadata.namespace == namespace and _names_portal(each.spec):
            addresses = (each.status.get("loadBalancer") or {}).get("ingress")
            found.append(DoorRoute(f"Ingress/{namespace}/{each.metadata.name}", not addresses))
    for kind, paths in _ROUTES.items():
        for path in paths:
            found += [
                DoorRoute(f"{kind}/{each.metadata.namespace}/{each.metadata.name}", not each.status.get("parents"))
                for each in await reading.list(path, _DoorObject, kind)
                if _leads(each, namespace)
            ]
    return found


def _leads(route: _DoorObject, namespace: str) -> bool:
    refs = [ref for rule in route.spec.get("rules") or () for ref in rule.get("backendRefs") or ()]
    return any(
        ref.get("name") == _PORTAL and (ref.get("namespace") or route.metadata.namespace) == namespace for ref in refs
    )


def _names_portal(spec: object) -> bool:
    """Return whether a backend in the spec of an Ingress is the portal's Service."""
    if isinstance(spec, dict):
        service = spec.get("service")
        here = isinstance(service, dict) and service.get("name") == _PORTAL
        return here or any(_names_portal(each) for each in spec.values())
    return isinstance(spec, list) and any(_names_portal(each) for each in spec)
