"""What the doctor says of a portal: whether people get in, what they are offered, and whether its hub is there."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from vkprovider.doctor.findings import Level
from vkprovider.platform.http.tls import self_signed
from vkprovider.platform.objects import ConfigMap, CustomResource, Metadata, RoleBinding, RoleRef, Secret, Subject
from vkprovider.platform.siteaddress import address_of
from vkprovider.portal.checks import doors, hub, offer, page, services
from vkprovider.portal.checks.doors import DoorRoute, DoorService
from vkprovider.portal.checks.road import RoadAnswer, check_road
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.settings import PortalSettings

NAMESPACE = "vkp"
KEY = base64.b64encode(bytes(32)).decode()
NOW = datetime.now(UTC)


def settings(**more: str) -> PortalSettings:
    found = doors.parse({f"VKPROVIDER_PORTAL_{name}": value for name, value in more.items()})
    assert isinstance(found, PortalSettings), found
    return found


# ------------------------------------------------------------------------------------------------ doors


def test_settings_that_no_portal_starts_with_are_said_without_secrets() -> None:
    problem = doors.parse({"VKPROVIDER_PORTAL_COOKIE_KEY": "c2VjcmV0LWtleQ", "VKPROVIDER_PORTAL_STARTS_MAX": "no"})
    assert isinstance(problem, str)
    assert "c2VjcmV0" not in problem
    assert "VKPROVIDER_PORTAL_COOKIE_KEY: is not 32 bytes in base64" in problem
    [found] = doors.check_settings(NAMESPACE, problem)
    assert (found.level, found.reason) == (Level.FAULT, "SettingInvalid")
    assert found.remedy.endswith("kubectl -n vkp rollout restart deployment/vkprovider-portal")


def test_a_portal_without_a_key_lets_nobody_in() -> None:
    [found] = doors.check_key(NAMESPACE, settings(), has_secret=False)
    assert (found.level, found.object, found.reason) == (
        Level.FAULT,
        "Secret/vkp/vkprovider-portal-settings",
        "CookieKeyMissing",
    )
    assert found.remedy.startswith("kubectl -n vkp create secret generic vkprovider-portal-settings --from-literal=")
    [found] = doors.check_key(NAMESPACE, settings(), has_secret=True)
    assert found.remedy.startswith("kubectl -n vkp patch secret vkprovider-portal-settings ")
    assert doors.check_key(NAMESPACE, settings(COOKIE_KEY=KEY), has_secret=True) == []
    by_ingress = settings(CALLERS="headers", INGRESS_SECRET="x" * 20)
    assert doors.check_key(NAMESPACE, by_ingress, has_secret=True) == [], "nobody logs in there"


def pair(*names: str) -> Secret:
    pem = self_signed(names)
    return Secret(Metadata("tls"), {"tls.crt": pem, "tls.key": pem})


def test_certificates_are_read() -> None:
    [found] = doors.check_certificate(NAMESPACE, None, NOW, hub=False)
    assert (found.level, found.reason) == (Level.NOTE, "CertificateSelfMade")
    assert found.remedy == "kubectl -n vkp create secret tls vkprovider-portal-tls --cert=tls.crt --key=tls.key"
    good = pair("labs.example.com")
    assert doors.check_certificate(NAMESPACE, good, NOW, hub=False) == []
    years = timedelta(days=3650)
    for now, level, says in (
        (NOW + years - timedelta(days=10), Level.NOTE, "the certificate ends at"),
        (NOW + years + timedelta(days=1), Level.FAULT, "the certificate ended at"),
    ):
        [found] = doors.check_certificate(NAMESPACE, good, now, hub=False)
        assert (found.level, found.reason) == (level, "CertificateUnusable")
        assert says in found.message


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"tls.crt": b"no", "tls.key": b"no"},
        {"tls.crt": b"", "tls.key": b""},
        {"tls.crt": self_signed(["a"]), "tls.key": self_signed(["a"])},
    ],
)
def test_a_certificate_that_no_replica_can_serve_is_a_fault(data: dict[str, bytes]) -> None:
    [found] = doors.check_certificate(NAMESPACE, Secret(Metadata("tls"), data), NOW, hub=False)
    assert (found.level, found.reason) == (Level.FAULT, "CertificateUnusable")
    assert "apply -f -" in found.remedy


def test_a_hub_needs_the_name_of_the_service_in_the_certificate() -> None:
    [found] = doors.check_certificate(NAMESPACE, pair("labs.example.com"), NOW, hub=True)
    assert (found.level, "vkprovider-portal.vkp" in found.message) == (Level.NOTE, True)
    assert doors.check_certificate(NAMESPACE, pair("a", "vkprovider-portal.vkp.svc"), NOW, hub=True) == []


def service(kind: str, *addresses: str) -> DoorService:
    status = {"loadBalancer": {"ingress": [{"ip": each} for each in addresses]} if addresses else {}}
    return msgspec.convert({"metadata": {"name": "s"}, "spec": {"type": kind}, "status": status}, DoorService)


@pytest.mark.parametrize(
    ("of", "routes", "reason"),
    [
        (None, [], "NoAddress"),
        (service("ClusterIP"), [], "NoAddress"),
        (service("NodePort"), [], ""),
        (service("LoadBalancer"), [], "AddressPending"),
        (service("LoadBalancer", "192.0.2.1"), [], ""),
        (service("ClusterIP"), [DoorRoute("Ingress/vkp/labs", pending=True)], "AddressPending"),
        (
            service("ClusterIP"),
            [DoorRoute("Ingress/vkp/labs", pending=True), DoorRoute("HTTPRoute/vkp/a", pending=False)],
            "",
        ),
    ],
)
def test_something_leads_to_a_portal(of: DoorService | None, routes: list[DoorRoute], reason: str) -> None:
    found = doors.check_address(NAMESPACE, of, routes)
    assert [each.reason for each in found] == ([reason] if reason else [])
    assert all(each.level is Level.NOTE and each.remedy for each in found)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RoadAnswer(101), None),
        (RoadAnswer(426), (Level.FAULT, "ProxyClosed")),
        (RoadAnswer(0, "Cannot connect"), (Level.NOTE, "AddressSilent")),
        (RoadAnswer(302), None),
        (RoadAnswer(404), None),
    ],
)
def test_websockets_come_through_at_each_address(answer: RoadAnswer, said: tuple[Level, str] | None) -> None:
    found = check_road(NAMESPACE, address_of("https://example.com/labs"), answer)
    assert [(each.level, each.reason) for each in found] == ([said] if said else [])
    assert all("https://example.com/labs" in each.message and each.remedy for each in found)


def binding(*subjects: Subject, role: str = doors.USER_ROLE, namespace: str = NAMESPACE) -> RoleBinding:
    return RoleBinding(Metadata("users", namespace), RoleRef("ClusterRole", role), subjects or None)


def group(name: str) -> Subject:
    return Subject("Group", name)


def user(name: str) -> Subject:
    return Subject("User", name)


@pytest.mark.parametrize(
    ("bindings", "says"),
    [
        ([], "nobody is bound to vkprovider-portal-user"),
        ([binding()], "nobody is bound"),
        ([binding(group("students"), role="view")], "nobody is bound"),
        ([binding(group("students"), namespace="friday")], "bindings in friday have no effect"),
        ([binding(group("students"))], ""),
        ([binding(group("students"), namespace="")], ""),
    ],
)
def test_somebody_may_have_a_lab(bindings: list[RoleBinding], says: str) -> None:
    found = doors.check_callers(NAMESPACE, settings(USERNAME_PREFIX="oidc:"), bindings)
    assert [each.reason for each in found] == (["NobodyBound"] if says else [])
    for each in found:
        assert says in each.message
        assert each.remedy.endswith("--clusterrole=vkprovider-portal-user --group=oidc:students")


@pytest.mark.parametrize(
    ("prefix", "subjects", "says"),
    [
        ("oidc:", [user("oidc:alice"), group("anything")], ""),
        ("oidc:", [user("oidc:alice"), user("bob")], "is oidc:, and bob have no lab"),
        ("oidc:", [Subject("ServiceAccount", "alice", namespace="learners")], "system:serviceaccount:learners:alice"),
        ("system:serviceaccount:learners:", [Subject("ServiceAccount", "alice", namespace="learners")], ""),
        ("", [user("alice"), group("students")], ""),
        ("", [group("oidc:students")], "it names oidc:students, and VKPROVIDER_PORTAL_USERNAME_PREFIX is empty"),
        ("", [group("system:authenticated")], ""),
        ("", [group("a:x"), group("b:y")], ""),
    ],
)
def test_names_in_bindings_begin_as_the_setting_says(prefix: str, subjects: list[Subject], says: str) -> None:
    found = doors.check_callers(NAMESPACE, settings(USERNAME_PREFIX=prefix), [binding(*subjects)])
    assert [(each.object, each.reason) for each in found] == (
        [("RoleBinding/vkp/users", "PrefixDiffers")] if says else []
    )
    assert all(says in each.message for each in found)


# ------------------------------------------------------------------------------------------------ offer


def definition(name: str, *, ready: bool = True, cpu: str = "1", **labels: str) -> CustomResource:
    kept = [{"version": "1", "digest": "d", "resources": {"cpu": cpu, "memory": "2Gi"}}]
    status = {"version": "1", "versions": kept} if ready else {}
    told = {f"vkprovider.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return CustomResource(Metadata(name, labels=told), {}, status)


@pytest.mark.parametrize(
    ("definitions", "says", "remedy"),
    [
        ([], "there is no LabletDefinition", "docs/first-lablet.md"),
        (
            [definition("a", owner_namespace="friday"), definition("b")],
            "a belongs to the class friday, which does not share it; b has no label vkprovider.io/family",
            "kubectl label labletdefinition b vkprovider.io/family=b",
        ),
        ([definition("a", ready=False, family="x")], "a was never READY", "kubectl describe labletdefinition a"),
        ([definition("a", owner_namespace="friday", family="x")], "a belongs to the class friday", "owner-namespace"),
        ([definition("a", family="x"), definition("b")], "", ""),
    ],
)
def test_an_empty_menu_says_why(definitions: list[CustomResource], says: str, remedy: str) -> None:
    menu = offer.menu_for(definitions, PortalConfig())
    found = offer.check_menu(NAMESPACE, definitions, menu)
    assert [(each.level, each.reason) for each in found] == ([(Level.NOTE, "MenuEmpty")] if says else [])
    for each in found:
        assert says in each.message
        assert remedy in each.remedy


def test_a_quota_that_fits_no_lab_is_said() -> None:
    config = PortalConfig.model_validate(
        {
            "quotas": {
                "default": {"cpu": "500m"},
                "groups": {"staff": {"cpu": "4"}, "guests": {"spawn": False}},
                "users": {"bob": {"memory": "1Gi"}},
            }
        }
    )
    definitions = [definition("a", family="x"), definition("b", cpu="3", family="y")]
    found = offer.check_quotas(NAMESPACE, offer.menu_for(definitions, config))
    assert [each.reason for each in found] == ["QuotaTooSmall"] * 2
    assert [each.message for each in found] == [
        "the default quota (0.5 CPU, any memory) fits no lab of the menu; the smallest, a, needs 1 CPU and 2048 MiB",
        "the quota of bob (any CPU, 1024 MiB) fits no lab of the menu; the smallest, a, needs 1 CPU and 2048 MiB",
    ]
    assert offer.check_quotas(NAMESPACE, offer.menu_for([], config)) == [], "the menu is empty, which is said"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (None, "the ConfigMap vkprovider-portal-config has no portal.yaml"),
        ({"other.yaml": ""}, "has no portal.yaml"),
        ({"portal.yaml": "sizes: ["}, "portal.yaml: while parsing"),
        ({"portal.yaml": "sizes: []"}, "portal.yaml: sizes: "),
        ({"portal.yaml": "sizes: [one]"}, ""),
        ({"portal.yaml": ""}, ""),
    ],
)
def test_the_file_of_the_configuration_is_read(files: dict[str, str] | None, says: str) -> None:
    mounted = ConfigMap(Metadata("c"), files) if files is not None else None
    found = offer.read_config("/etc/vkprovider/portal/portal.yaml", mounted)
    assert isinstance(found, str) is bool(says)
    if isinstance(found, str):
        assert says in found
        [finding] = offer.check_config(NAMESPACE, found)
        assert (finding.level, finding.reason) == (Level.FAULT, "SettingInvalid")
    assert offer.read_config("", mounted) == PortalConfig()
    assert offer.read_config("/elsewhere/portal.yaml", mounted) == PortalConfig(), "it is not seen here"


# ------------------------------------------------------------------------------------------------ hub

HUB = services.service_of("http://hub.jhub:8081/hub/api", NAMESPACE)


def policy(labels: dict[str, str], *ports: dict[str, Any]) -> services.EgressPolicy:
    egress = [{"ports": list(ports)}] if ports else [{}]
    spec = {"podSelector": {"matchLabels": labels}, "egress": egress}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, services.EgressPolicy)


OURS = {"app.kubernetes.io/name": "vkprovider-portal"}
SHIPPED = policy(OURS, {"port": 443}, {"port": 6443})


@pytest.mark.parametrize(
    ("policies", "open_"),
    [
        ([], True),
        ([policy({"app.kubernetes.io/name": "vkprovider"}, {"port": 443})], True),
        ([SHIPPED], False),
        ([SHIPPED, policy({"app.kubernetes.io/name": "vkprovider"}, {"port": 8081})], False),
        ([SHIPPED, policy(OURS, {"port": 8081})], True),
        ([SHIPPED, policy(OURS, {"port": 8000, "endPort": 8100})], True),
        ([SHIPPED, policy(OURS, {"port": "hub"})], True),
        ([SHIPPED, policy({})], True),
    ],
)
def test_policies_let_the_portal_connect_to_its_hub(policies: list[services.EgressPolicy], open_: bool) -> None:  # noqa: FBT001 (a column)
    found = hub.check_hub_open(NAMESPACE, HUB, policies)
    assert [each.reason for each in found] == ([] if open_ else ["HubClosed"])


def slice_of(*conditions: dict[str, bool]) -> services.ServiceSlice:
    endpoints = [{"conditions": each} for each in conditions]
    return msgspec.convert({"endpoints": endpoints or None}, services.ServiceSlice)


@pytest.mark.parametrize(
    ("exists", "slices", "says"),
    [
        (False, [], "there is no such Service"),
        (True, [], "no Pod of the hub is ready"),
        (True, [slice_of(), slice_of({"ready": False})], "no Pod of the hub is ready"),
        (True, [slice_of({"ready": False}, {})], ""),
    ],
)
def test_a_hub_that_is_away_is_a_fault(exists: bool, slices: list[services.ServiceSlice], says: str) -> None:  # noqa: FBT001 (a column)
    found = hub.check_hub_answers(HUB, exists=exists, slices=slices)
    assert [(each.level, each.object, each.reason) for each in found] == (
        [(Level.FAULT, "Service/jhub/hub", "HubAway")] if says else []
    )
    assert all(says in each.message for each in found)
    outside = services.service_of("https://hub.example.com/hub/api", NAMESPACE)
    assert hub.check_hub_answers(outside, exists=False, slices=[]) == []


def test_a_hub_is_bound() -> None:
    account = Subject("ServiceAccount", "hub", namespace="jhub")
    assert hub.check_hub_bound(NAMESPACE, HUB, [binding(account, role=hub.HUB_ROLE)]) == []
    for others in ([], [binding(account)], [binding(account, role=hub.HUB_ROLE, namespace="jhub")]):
        [found] = hub.check_hub_bound(NAMESPACE, HUB, others)
        assert (found.level, found.reason) == (Level.NOTE, "HubUnbound")
        assert found.remedy.endswith("--clusterrole=vkprovider-portal-hub --serviceaccount=jhub:hub")


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("http://hub:8081/hub/api", ("hub", "vkp", 8081)),
        ("http://hub.jhub.svc.cluster.local:8081/hub/api", ("hub", "jhub", 8081)),
        ("https://hub.example.com/hub/api", ("", "", 443)),
        ("http://192.0.2.1/hub/api", ("", "", 80)),
    ],
)
def test_the_service_of_a_hub_is_read_from_its_url(url: str, service: tuple[str, str, int]) -> None:
    assert services.service_of(url, NAMESPACE) == service


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://example.com/hub/api", True),
        ("https://example.com:443/hub/api", True),
        ("https://hub.jhub:8443/hub/api", False),
        ("http://hub.jhub:8081/hub/api", False),
        ("https://hub:8443/hub/api", False),
        ("https://hub.jhub.svc:8443/hub/api", False),
        ("https://hub.example.com/hub/api", False),
    ],
)
def test_a_host_of_two_words_may_be_a_domain(url: str, may: bool) -> None:  # noqa: FBT001 (a column)
    assert services.may_be_outside(url) is may


# ------------------------------------------------------------------------------------------------ provider's page

PAGE = services.service_of("https://vkprovider.vkp.svc:8082", NAMESPACE)


@pytest.mark.parametrize(
    ("exists", "slices", "says"),
    [
        (False, [], "there is no such Service"),
        (True, [slice_of({"ready": False})], "no Pod behind it is ready"),
        (True, [slice_of({"ready": False}, {})], ""),
    ],
)
def test_a_page_that_is_away_is_a_fault(exists: bool, slices: list[services.ServiceSlice], says: str) -> None:  # noqa: FBT001 (a column)
    found = page.check_page_answers(PAGE, exists=exists, slices=slices)
    assert [(each.level, each.object, each.reason) for each in found] == (
        [(Level.FAULT, "Service/vkp/vkprovider", "PageAway")] if says else []
    )
    assert all(says in each.message for each in found)


def test_policies_let_the_portal_connect_to_the_page() -> None:
    [found] = page.check_page_open(NAMESPACE, PAGE, [SHIPPED])
    assert (found.level, found.reason, "port 8082" in found.message) == (Level.NOTE, "PageClosed", True)
    assert page.check_page_open(NAMESPACE, PAGE, [SHIPPED, policy(OURS, {"port": 8082})]) == []


def test_a_portal_that_knows_no_page_is_told() -> None:
    [found] = page.check_page_known(NAMESPACE, settings())
    about = "ConfigMap/vkp/vkprovider-portal-settings"
    assert (found.level, found.object, found.reason) == (Level.NOTE, about, "PageUnset")
    assert page.check_page_known(NAMESPACE, settings(PROVIDER_URL="https://vkprovider.vkp.svc:8082")) == []


HOST = "vkprovider.vkp.svc"


def mounted(name: str, *hosts: str, ca: bool = True) -> page.MountedSecret:
    secret = pair(*hosts)
    return page.MountedSecret(name, Secret(secret.metadata, {**secret.data, **({"ca.crt": b"ca"} if ca else {})}))


def test_the_portal_trusts_a_page_with_a_ca_of_its_own() -> None:
    good = mounted("my-tls", HOST)
    assert page.check_page_trusted(PAGE, HOST, good, good, NOW) == []
    wild = mounted("my-tls", "*.vkp.svc")
    assert page.check_page_trusted(PAGE, HOST, wild, wild, NOW) == []
    none = page.MountedSecret("my-tls", None)
    [found] = page.check_page_trusted(PAGE, HOST, none, none, NOW)
    assert (found.level, found.object, found.reason) == (Level.NOTE, "Secret/vkp/my-tls", "PageUntrusted")
    assert "create secret generic my-tls " in found.remedy
    outside = services.service_of("https://labs.example.com/provider", NAMESPACE)
    assert page.check_page_trusted(outside, "labs.example.com", none, none, NOW) == []


@pytest.mark.parametrize(
    ("served", "after", "level", "says"),
    [
        (mounted("t", HOST, ca=False), 0, Level.NOTE, "it has no ca.crt"),
        (mounted("t", "labs.example.com"), 0, Level.NOTE, f"as {HOST}, and the certificate is for labs.example.com"),
        (mounted("t", HOST), 3651, Level.FAULT, "the certificate ended at"),
        (mounted("t", HOST), 3640, Level.NOTE, "the certificate ends at"),
        (
            page.MountedSecret("t", Secret(Metadata("t"), {"tls.crt": b"x", "ca.crt": b"ca"})),
            0,
            Level.FAULT,
            "no tls.crt and tls.key that can be read",
        ),
    ],
)
def test_a_page_that_no_portal_can_verify_is_told(
    served: page.MountedSecret, after: int, level: Level, says: str
) -> None:
    [found] = page.check_page_trusted(PAGE, HOST, served, served, NOW + timedelta(days=after))
    assert (found.level, found.object, found.reason) == (level, "Secret/vkp/t", "PageUntrusted")
    assert says in found.message


def test_the_ca_may_be_in_a_secret_of_the_portal() -> None:
    served = mounted("t", HOST, ca=False)
    assert page.check_page_trusted(PAGE, HOST, served, mounted("ours", HOST), NOW) == []
    [found] = page.check_page_trusted(PAGE, HOST, served, page.MountedSecret("ours", None), NOW)
    assert (found.object, "create secret generic ours " in found.remedy) == ("Secret/vkp/ours", True)


def test_the_page_takes_the_tokens_of_the_api_server() -> None:
    assert page.check_page_takes(PAGE, "vkprovider.io https://kubernetes.default.svc") == []
    for audiences in ("", "vkprovider.io"):
        [found] = page.check_page_takes(PAGE, audiences)
        assert (found.object, found.reason) == ("ConfigMap/vkp/vkprovider-settings", "PageRefuses")
    outside = services.service_of("https://labs.example.com/provider", NAMESPACE)
    assert page.check_page_takes(outside, "") == page.check_page_answers(outside, exists=False, slices=[]) == []
