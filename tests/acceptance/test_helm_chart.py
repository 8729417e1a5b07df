"""The chart, rendered by the real Helm, holds the objects of the kustomization; each value does what it says."""

import base64
import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import msgspec
import pytest
import yaml

from tests.support.helm import CHART, HELM, MISSING, SYSTEM, Helm, named
from tools.helm.chart import semver
from tools.render import INSTALL, ROOT
from vkprovider import __version__
from vkprovider.platform.objects import ConfigMap, Metadata, RoleBinding
from vkprovider.portal.checks import doors
from vkprovider.portal.checks.doors import check_callers
from vkprovider.portal.checks.hub import check_hub_bound
from vkprovider.portal.checks.offer import read_config
from vkprovider.portal.checks.services import ServiceAddress
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.settings import PortalSettings
from vkprovider.prepull.config import PrepullConfig

pytestmark = pytest.mark.skipif(HELM is None, reason=MISSING)

KUSTOMIZED = named(INSTALL.read_text(encoding="utf-8"))
NAMESPACE = "Namespace /vkprovider-system"
LOGINS = f"{NAMESPACE}-logins"
DEPLOYMENT = "Deployment vkprovider-system/vkprovider"
CONFINE = "ValidatingAdmissionPolicy /vkprovider-confine-portal"
KEPT = {"helm.sh/resource-policy": "keep"}


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


def values(folder: Path, **given: Any) -> str:
    """Write a file of values, and give the option that names it."""
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(given))
    return f"--values={path}"


def test_default_values_render_the_kustomization(helm: Helm) -> None:
    rendered = helm.template()
    assert rendered[LOGINS]["metadata"]["annotations"] == KEPT
    assert rendered.keys() == KUSTOMIZED.keys() - {NAMESPACE}
    assert rendered == {name: each for name, each in KUSTOMIZED.items() if name != NAMESPACE}


def test_namespace_is_that_of_the_kustomization_and_is_kept(helm: Helm) -> None:
    rendered = helm.template("--set=namespace.create=true")
    assert rendered[LOGINS]["metadata"]["annotations"] == KEPT
    assert rendered[NAMESPACE]["metadata"].pop("annotations") == KEPT
    assert rendered == KUSTOMIZED
    assert LOGINS not in helm.template("--set=logins.createNamespace=false")


def test_lint_finds_nothing(helm: Helm) -> None:
    said = helm("lint", str(CHART), "--strict", "--namespace=vkprovider-system")
    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_package_holds_every_file(helm: Helm, tmp_path: Path) -> None:
    helm("package", str(CHART), f"--destination={tmp_path}")
    [package] = tmp_path.iterdir()
    assert package.name == f"vkprovider-{semver(__version__)}.tgz"
    shown = helm("show", "readme", str(package))
    assert shown.strip() == (CHART / "README.md").read_text(encoding="utf-8").strip()
    rendered = named(helm("template", "vkprovider", str(package), "--namespace=vkprovider-system"))
    assert rendered == helm.template()


@pytest.mark.parametrize(
    ("value", "gone"),
    [
        ("crds.install", {"CustomResourceDefinition"}),
        ("podDisruptionBudget.enabled", {"PodDisruptionBudget"}),
        ("networkPolicy.enabled", {"NetworkPolicy"}),
        ("flowSchemas.enabled", {"FlowSchema"}),
        ("priorityClass.create", {"PriorityClass"}),
    ],
)
def test_switch_leaves_out_a_kind(helm: Helm, value: str, gone: set[str]) -> None:
    programs = "--set=portal.enabled=true,mux.enabled=true,workbench.enabled=true"
    everything = helm.template(programs)
    left = helm.template(programs, f"--set={value}=false")
    assert left == {name: each for name, each in everything.items() if each["kind"] not in gone}


def test_each_program_has_the_egress_of_the_values(helm: Helm, tmp_path: Path) -> None:
    rule = {"ports": [{"port": 3128, "protocol": "TCP"}]}
    given = values(tmp_path, networkPolicy={"extraEgress": [rule]}, portal={"enabled": True}, mux={"enabled": True})
    for name in ("vkprovider", "vkprovider-portal", "vkprovider-mux"):
        policy = helm.template(given)[f"NetworkPolicy {SYSTEM}/{name}"]
        assert policy["spec"]["egress"][-1] == rule


def test_policies_are_left_out_but_for_those_that_roles_rely_on(helm: Helm) -> None:
    def policies(*arguments: str) -> set[str]:
        return {name.split("/")[1] for name in helm.template(*arguments) if name.startswith("ValidatingAdmission")}

    everything = policies()
    assert policies("--set=policies.requireUse=false") == everything - {"vkprovider-require-use"}
    none = policies("--set=policies.enabled=false,policies.requireUse=false")
    limits = {"vkprovider-instructors", "vkprovider-class-lablets", "vkprovider-assignments", "vkprovider-links"}
    always = {"vkprovider-confine", "vkprovider-installation", *limits}
    assert none == always


def test_monitoring_is_that_of_its_kustomizations(helm: Helm) -> None:
    on = "podMonitor.enabled=true,prometheusRule.enabled=true,metricsService.enabled=true,dashboard.enabled=true"
    rendered = helm.template(f"--set={on},podMonitor.labels.release=prometheus")
    new = {name: each for name, each in rendered.items() if name not in KUSTOMIZED}
    folder = ROOT / "manifests" / "monitoring"
    [monitor] = named((folder / "operator" / "podmonitor.yaml").read_text()).values()
    [rules] = named((folder / "operator" / "prometheusrule.yaml").read_text()).values()
    assert new.pop("PodMonitor vkprovider-system/vkprovider")["spec"] == monitor["spec"]
    assert new.pop("PrometheusRule vkprovider-system/vkprovider")["spec"] == rules["spec"]
    dashboard = new.pop("ConfigMap vkprovider-system/vkprovider-dashboard")
    assert dashboard["data"] == {"dashboard.json": (folder / "dashboard.json").read_text()}
    assert dashboard["metadata"]["labels"] == {"grafana_dashboard": "1"}
    [(name, service)] = new.items()
    assert name == "Service vkprovider-system/vkprovider-metrics"
    assert service["spec"] == yaml.safe_load((folder / "service.yaml").read_text())["spec"]


@pytest.mark.parametrize("component", ["mux", "portal"])
def test_a_program_beside_the_provider_is_that_of_its_kustomization(helm: Helm, component: str) -> None:
    words = ("enabled=true", "replicaCount=1", "extraEnv[0].name=A", "extraEnv[0].value=b")
    rendered = helm.template("--set=" + ",".join(f"{component}.{word}" for word in words))
    new = {name: each for name, each in rendered.items() if name not in KUSTOMIZED}
    folder = ROOT / "manifests" / "components" / component
    resources = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    expected = named("---\n".join((folder / name).read_text() for name in resources))
    assert new.keys() == expected.keys()
    for name, each in expected.items():
        labels = new[name]["metadata"].pop("labels")
        assert labels["vkprovider.io/installed-in"] == "vkprovider-system"
        each["metadata"].pop("labels", None)
        if each["kind"] == "Deployment":
            [container] = each["spec"]["template"]["spec"]["containers"]
            container["image"] = f"vkprovider:{__version__}"
            if component == "portal":  # as the overlay with everything has it
                page = "https://vkprovider.vkprovider-system.svc:8082"
                container["env"].append({"name": "VKPROVIDER_PORTAL_PROVIDER_URL", "value": page})
            container["env"].append({"name": "A", "value": "b"})
            each["spec"]["replicas"] = 1
        assert new[name] == each


@pytest.mark.parametrize("word", ["labs", "no", "true", "null"])
def test_the_portal_and_its_policy_have_one_prefix(helm: Helm, word: str) -> None:
    rendered = helm.template("--set=portal.enabled=true", f"--set-string=portal.namespacePrefix={word}")
    policy = rendered["ValidatingAdmissionPolicy /vkprovider-confine-portal"]
    [prefix] = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "prefix"]
    assert prefix == f"'{word}-'"
    deployment = rendered["Deployment vkprovider-system/vkprovider-portal"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "VKPROVIDER_PORTAL_NAMESPACE_PREFIX", "value": word} in container["env"]


def test_the_doors_of_the_portal_are_values(helm: Helm, tmp_path: Path) -> None:
    """Settings, menu, sizes and quotas, who may, and the key; each leaves no object where it is empty."""
    plain = helm.template("--set=portal.enabled=true")
    config = {"sizes": ["small"], "quotas": {"default": {"cpu": "4"}}}
    portal = {
        "enabled": True,
        "settings": {"VKPROVIDER_PORTAL_USERNAME_PREFIX": "oidc:", "VKPROVIDER_PORTAL_DURATION_SECONDS": 7200},
        "config": config,
        "createCookieKey": True,
        "users": ["oidc:students"],
        "hubs": [{"namespace": "jhub", "name": "hub"}],
    }
    given = values(tmp_path, portal=portal)
    rendered = helm.template(given)
    system = "vkprovider-system"
    settings, files = (f"ConfigMap {system}/vkprovider-portal-{name}" for name in ("settings", "config"))
    users, hubs = (f"RoleBinding {system}/portal-{name}" for name in ("users", "hub"))
    secret = f"Secret {system}/vkprovider-portal-settings"
    assert rendered.keys() - plain.keys() == {settings, files, users, hubs, secret}
    told = rendered[settings]["data"]
    variables = {name: base64.b64decode(value).decode() for name, value in rendered[secret]["data"].items()}
    assert variables.keys() == {doors.KEY}
    assert isinstance(doors.parse(told | variables), PortalSettings), "the program takes them, with a key of 32 bytes"
    assert told["VKPROVIDER_PORTAL_DURATION_SECONDS"] == "7200"
    assert rendered[secret]["metadata"]["annotations"] == KEPT
    mounted = ConfigMap(Metadata("config"), rendered[files]["data"])
    assert read_config(told["VKPROVIDER_PORTAL_CONFIG"], mounted) == PortalConfig.model_validate(config)
    bindings = [msgspec.convert(rendered[name], RoleBinding) for name in (users, hubs)]
    assert check_callers(system, PortalSettings.model_validate(told), bindings) == []
    assert check_hub_bound(system, ServiceAddress("hub", "jhub", 8081), bindings) == []
    deployment = f"Deployment {system}/vkprovider-portal"
    template, before = (each[deployment]["spec"]["template"] for each in (rendered, plain))
    assert template["metadata"].pop("annotations").keys() == {"checksum/settings"}, "a change replaces the replicas"
    assert template == before


def test_one_ingress_leads_to_the_portal_and_one_to_the_page(helm: Helm) -> None:
    """As the example of the manifests does; without a name there is none."""
    on = "--set=portal.enabled=true,ingress.enabled=true"
    rendered = helm.template(f"{on},ingress.host=labs.example.com")
    made = [each for each in rendered.values() if each["kind"] == "Ingress"]
    shipped = list(yaml.safe_load_all((ROOT / "manifests" / "examples" / "ingress.yaml").read_text()))
    assert [each["spec"] for each in made] == [each["spec"] for each in shipped]
    notes = [each["metadata"]["annotations"] for each in made]
    assert notes == [each["metadata"]["annotations"] for each in shipped]
    for each in made:
        kubernetes_validate.validate(each, "1.30", strict=True)
    assert "ingress.host: the name that people open" in helm.refused("template", "v", str(CHART), on)
    alone = helm.template(f"{on},ingress.host=labs.example.com,ingress.pagePath=")
    assert [each["metadata"]["name"] for each in alone.values() if each["kind"] == "Ingress"] == ["vkprovider-portal"]


def test_workbenches_are_a_value_with_their_images_drivers_and_host(helm: Helm) -> None:
    """Off, nothing of them is there, and the policy lists no image, whatever is given."""
    portal = "--set=portal.enabled=true"
    given = "workbench.images={registry.example.com/workbench:1.0,quay.io/team/init},workbench.drivers={nfs.csi.k8s.io}"
    plain = helm.template(portal)
    assert helm.template(f"{portal},{given}") == plain
    rendered = helm.template(f"{portal},workbench.enabled=true,{given}")
    folder = ROOT / "manifests" / "components" / "workbench"
    resources = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    expected = named("---\n".join((folder / name).read_text() for name in resources))
    assert rendered.keys() - plain.keys() == expected.keys()
    for name, each in expected.items():
        labels = rendered[name]["metadata"].pop("labels")
        assert labels["vkprovider.io/installed-in"] == "vkprovider-system"
        assert rendered[name] == each
    listed = {
        each["name"]: json.loads(each["expression"])
        for each in rendered[CONFINE]["spec"]["variables"]
        if each["name"] in {"images", "drivers"}
    }
    images = ["registry.example.com/workbench:1.0", "quay.io/team/init"]
    assert listed == {"images": images, "drivers": ["nfs.csi.k8s.io"]}
    off = f"{portal.replace('true', 'false')},workbench.enabled=true"
    assert "workbench.enabled needs portal.enabled" in helm.refused("template", "v", str(CHART), off)
    quoted = f"{portal},workbench.images={{a'b}}"
    assert "does not match pattern" in helm.refused("template", "v", str(CHART), quoted)
    hosted = helm.template(
        f"{portal},ingress.enabled=true,ingress.host=labs.example.com,ingress.workbenchHost=*.wb.net"
    )
    ingress = hosted["Ingress vkprovider-system/vkprovider-portal"]["spec"]
    assert [each["host"] for each in ingress["rules"]] == ["labs.example.com", "*.wb.net"]
    assert ingress["tls"][1] == {"hosts": ["*.wb.net"], "secretName": "workbench-tls"}
    pod = hosted["Deployment vkprovider-system/vkprovider-portal"]["spec"]["template"]["spec"]
    assert {"name": "VKPROVIDER_PORTAL_WORKBENCH_HOSTS", "value": "*.wb.net"} in pod["containers"][0]["env"]


def test_prepull_is_that_of_the_example_in_a_restricted_namespace(helm: Helm, tmp_path: Path) -> None:
    example = named((ROOT / "manifests" / "examples" / "prepull.yaml").read_text())
    config = {"images": ["quay.io/team/workbench:1.4"], "atOnce": 1}
    on = {"enabled": True, "schedule": "30 2 * * 1", "config": config}
    rendered = helm.template(values(tmp_path, prepull=on))
    new = {name: each for name, each in rendered.items() if name not in KUSTOMIZED}
    namespace = new.pop("Namespace /vkprovider-prepull")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert new.keys() == example.keys()
    cronjob, files = "CronJob vkprovider-prepull/prepull", "ConfigMap vkprovider-prepull/prepull"
    assert PrepullConfig.model_validate(yaml.safe_load(new[files]["data"].pop("images.yaml"))).at_once == 1
    example[files]["data"].pop("images.yaml")
    assert new[cronjob]["spec"].pop("schedule") == "30 2 * * 1"
    example[cronjob]["spec"].pop("schedule")
    for name, each in example.items():
        new[name]["metadata"].pop("labels")
        assert new[name] == each, name
    private = helm.template(values(tmp_path, prepull={**on, "config": {**config, "pullSecret": "quay"}}))
    pod = private[cronjob]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["volumes"][1] == {"name": "registries", "secret": {"secretName": "quay"}}
    assert pod["containers"][0]["command"][-1] == "--docker-config=/etc/registries/.dockerconfigjson"


def test_notes_say_what_is_missing(helm: Helm) -> None:
    def notes(*arguments: str) -> str:
        words = ("--dry-run=client", "--namespace=vkprovider-system", *arguments)
        return helm("install", "vkprovider", str(CHART), *words).partition("NOTES:")[2]

    bare = notes("--set=portal.enabled=true,workbench.enabled=true")
    for missing in (
        doors.KEY,
        "vkprovider-portal-tls",
        "portal.users names",
        "ingress.enabled is",
        "workbench.images is empty",
    ):
        assert missing in bare
    assert "vkprovider doctor --namespace vkprovider-system" in bare
    given = "portal.enabled=true,portal.createCookieKey=true,portal.users[0]=students,ingress.enabled=true"
    told = notes(f"--set={given},ingress.host=labs.example.com")
    for there in (doors.KEY, "portal.users names", "ingress.enabled is"):
        assert there not in told
    assert "https://labs.example.com/provider" in told
    assert "portal" not in notes()


def test_another_namespace_is_meant_everywhere(helm: Helm) -> None:
    everything = (
        "namespace.create=true,prometheusRule.enabled=true,podMonitor.enabled=true,settings.RECONCILE_INTERVAL=5"
        ",portal.enabled=true,workbench.enabled=true,prepull.enabled=true"
    )
    rendered = helm.template(f"--set={everything}", namespace="labs")
    assert "vkprovider-system" not in yaml.safe_dump_all(rendered.values())
    [subject] = rendered["ClusterRoleBinding /vkprovider"]["subjects"]
    assert subject["namespace"] == "labs"
    assert {"Namespace /labs", "Namespace /labs-logins"} <= rendered.keys()


def test_settings_become_a_configmap_and_a_rollout(helm: Helm, tmp_path: Path) -> None:
    settings = {
        "VKPROVIDER_KEPT_BYTES_MAX": 1_000_000_000,
        "WORKER_PROBE_SECONDS": 2.5,
        "CONFIG_EXTRACT_ON_STOP": False,
    }
    rendered = helm.template(values(tmp_path, settings=settings))
    assert rendered["ConfigMap vkprovider-system/vkprovider-settings"]["data"] == {
        "VKPROVIDER_KEPT_BYTES_MAX": "1000000000",
        "WORKER_PROBE_SECONDS": "2.5",
        "CONFIG_EXTRACT_ON_STOP": "false",
    }
    other = helm.template(values(tmp_path, settings={**settings, "WORKER_PROBE_SECONDS": 3}))
    [one, two] = [each[DEPLOYMENT]["spec"]["template"]["metadata"]["annotations"] for each in (rendered, other)]
    assert one["checksum/settings"] != two["checksum/settings"]


def test_deployment_follows_its_values(helm: Helm, tmp_path: Path) -> None:
    digest = f"sha256:{'ab' * 32}"
    given = {
        "replicaCount": 3,
        "image": {"repository": "registry.example.com/vkprovider", "digest": digest, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "podAnnotations": {"team": "labs"},
        "podLabels": {"tier": "system"},
        "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/ca/ca.crt"}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
        "priorityClass": {"create": False, "name": ""},
        "secrets": {"existingSecret": "mine"},
        "resources": {"limits": {"memory": "1Gi"}},
        "serviceAccount": {"annotations": {"cloud.example.com/role": "labs"}},
        "networkPolicy": {"extraEgress": [{"ports": [{"port": 3128, "protocol": "TCP"}]}]},
    }
    rendered = helm.template(values(tmp_path, **given))
    deployment = rendered[DEPLOYMENT]
    kubernetes_validate.validate(deployment, "1.30", strict=True)
    assert deployment["spec"]["replicas"] == 3
    template = deployment["spec"]["template"]
    assert template["metadata"]["annotations"]["team"] == "labs"
    assert template["metadata"]["labels"] == {"app.kubernetes.io/name": "vkprovider", "tier": "system"}
    pod = template["spec"]
    [container] = pod["containers"]
    assert container["image"] == f"registry.example.com/vkprovider@{digest}"
    assert container["imagePullPolicy"] == "Always"
    assert container["env"][-1] == given["extraEnv"][0]  # type: ignore[index]
    assert container["volumeMounts"][-1] == {"name": "ca", "mountPath": "/ca"}
    assert container["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "192Mi"}}
    assert pod["volumes"][-1] == {"name": "ca", "configMap": {"name": "ca"}}
    assert "mine" in {volume.get("secret", {}).get("secretName") for volume in pod["volumes"]}
    assert (pod["imagePullSecrets"], pod["tolerations"]) == (given["imagePullSecrets"], given["tolerations"])
    assert "priorityClassName" not in pod
    account = rendered["ServiceAccount vkprovider-system/vkprovider"]
    assert account["metadata"]["annotations"] == {"cloud.example.com/role": "labs"}
    policy = rendered["NetworkPolicy vkprovider-system/vkprovider"]
    assert policy["spec"]["egress"][-1] == {"ports": [{"port": 3128, "protocol": "TCP"}]}


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("settings.WORKER_PROBE_SECOND=1", "additional properties 'WORKER_PROBE_SECOND' not allowed"),
        ("settings.VKPROVIDER_LOG_LEVEL=loud", "at '/settings/VKPROVIDER_LOG_LEVEL'"),
        ("replicaCount=many", "at '/replicaCount'"),
    ],
)
def test_wrong_value_is_refused_by_name(helm: Helm, argument: str, said: str) -> None:
    assert said in helm.refused("template", "vkprovider", str(CHART), f"--set={argument}")


def test_the_default_mux_has_the_range_of_the_design_and_is_kept(helm: Helm, tmp_path: Path) -> None:
    """R003-052, 074."""
    assert not [name for name in helm.template("--set=mux.enabled=true") if "svc-mux" in name]
    on = {"mux": {"enabled": True}, "defaultMux": {"enabled": True}}
    rendered = helm.template(values(tmp_path, **on))
    assert rendered["Namespace /svc-mux"]["metadata"]["annotations"] == KEPT
    mux = rendered["Service svc-mux/mux"]
    kubernetes_validate.validate(mux, "1.30", strict=True)
    marks = {"multiplexer": "true", "port-range": "20000-20099", "max-ports": "100"}
    assert mux["metadata"]["annotations"] == KEPT | {f"svc-mux.nowake.ai/{key}": text for key, text in marks.items()}
    ports = [{"name": "placeholder", "port": 101}]
    assert mux["spec"] == {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports}
    [subject] = rendered["RoleBinding svc-mux/vkprovider-mux-store"]["subjects"]
    assert (subject["name"], subject["namespace"]) == ("vkprovider-mux", "vkprovider-system")

    more = {"namespace": "edge", "createNamespace": False, "allowedNamespaces": ["a", "b"], "maxPorts": 5000000}
    more |= {"loadBalancerClass": "example.com/lb", "sourceRanges": ["192.0.2.0/24"], "allocateNodePorts": True}
    external: dict[str, str] = {"external-dns.alpha.kubernetes.io/hostname": "labs.example.com"}
    more["annotations"] = external
    rendered = helm.template(values(tmp_path, mux=on["mux"], defaultMux=on["defaultMux"] | more))
    mux = rendered["Service edge/mux"]
    assert "Namespace /edge" not in rendered
    assert mux["metadata"]["annotations"].items() > external.items()
    assert mux["metadata"]["annotations"]["svc-mux.nowake.ai/allowed-namespaces"] == "a,b"
    assert mux["metadata"]["annotations"]["svc-mux.nowake.ai/max-ports"] == "5000000"
    assert mux["spec"]["loadBalancerClass"] == "example.com/lb"
    assert mux["spec"]["loadBalancerSourceRanges"] == ["192.0.2.0/24"]
    assert mux["spec"]["allocateLoadBalancerNodePorts"] is True


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mux.enabled": "false"}, "defaultMux.enabled needs mux.enabled"),
        ({"mux.enabled": "true", "defaultMux.namespace": SYSTEM}, "defaultMux.namespace is that of the release"),
    ],
)
def test_a_default_mux_that_nobody_could_serve_is_refused(helm: Helm, given: dict[str, str], said: str) -> None:
    words = [f"--set={name}={text}" for name, text in {"defaultMux.enabled": "true", **given}.items()]
    assert said in helm.refused("template", "vkprovider", str(CHART), f"--namespace={SYSTEM}", *words)
