"""The values of the Helm chart: one table, from which values.yaml, the schema and the chart's page are made."""

import json
import textwrap
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tools.markdown import table
from vkprovider.lablet.models.fields import Model
from vkprovider.labs.settings.cluster import Settings
from vkprovider.platform.settings import Group
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.settings import PortalSettings
from vkprovider.prepull.config import PrepullConfig

BY_CHART: Final = {
    "VKPROVIDER_HTTP_PORT",
    "VKPROVIDER_HTTP_HOST",
    "VKPROVIDER_KUBELET_PORTS",
    "VKPROVIDER_LOGINS_NAMESPACE",
    "KUBECONFIG",
}
"""Settings that objects of the chart depend on, beside those that the Deployment sets."""

_BOOL: Final = {"type": "boolean"}
_STRING: Final = {"type": "string"}
_NAME: Final = {"type": "string", "minLength": 1}
_OBJECT: Final = {"type": "object"}
_PREFIX: Final = {"type": "string", "pattern": "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$"}
_STRINGS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_WORDS: Final = {"type": "array", "items": _NAME}
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}
_WIDTH: Final = 118


@dataclass(frozen=True)
class Value:
    """A value of the chart.

    Attributes:
        name: Its path: `image.tag`.
        says: What it is, in one or two sentences.
        schema: Its JSON schema, without description and default.
        default: As in the kustomization, so that the defaults of both agree.
    """

    name: str
    says: str
    schema: Mapping[str, Any]
    default: Any = False


def values(deployment: Mapping[str, Any]) -> list[Value]:
    """List all values.

    Args:
        deployment: That of the kustomization, where the defaults come from.
    """
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    return [
        Value("replicaCount", "Replicas of the provider. They share the Nodes evenly.", _count(), _spec(deployment)),
        Value("image.repository", "Name of the image, with its registry.", _NAME, container["image"].split(":")[0]),
        Value("image.tag", "Tag of the image. Empty: the version of the chart's application.", _STRING, ""),
        Value("image.digest", "Digest of the image (`sha256:…`), which replaces the tag.", _digest(), ""),
        Value(
            "image.pullPolicy", "Empty: what Kubernetes chooses by the tag.", _choice("Always IfNotPresent Never"), ""
        ),
        Value("imagePullSecrets", "Secrets for the registry: `[{name: …}]`.", _named(), []),
        Value("settings", _SETTINGS, settings_schema(container), {}),
        Value(
            "secrets.existingSecret",
            "Secret whose keys are secret settings. It may be missing.",
            _NAME,
            secrets["secrets"],
        ),
        Value("tls.existingSecret", _TLS, _NAME, secrets["tls"]),
        Value("resources", "Requests and limits of a replica.", _resources(), container["resources"]),
        Value(
            "nodeSelector",
            "Nodes that replicas may run on. Virtual Nodes have no operating system.",
            _STRINGS,
            pod["nodeSelector"],
        ),
        Value("tolerations", "Tolerations of the replicas.", _OBJECTS, []),
        Value("affinity", "The default keeps replicas away from virtual Nodes.", _OBJECT, pod["affinity"]),
        Value("topologySpreadConstraints", "How replicas are spread.", _OBJECTS, pod["topologySpreadConstraints"]),
        Value("priorityClass.create", "Whether the chart makes the PriorityClass `vkprovider`.", _BOOL, default=True),
        Value(
            "priorityClass.name", "The PriorityClass of the replicas. Empty: none.", _STRING, pod["priorityClassName"]
        ),
        Value("serviceAccount.annotations", "Such as those of a cloud's identities for an object store.", _STRINGS, {}),
        Value("podAnnotations", "Annotations of the replicas.", _STRINGS, {}),
        Value("podLabels", "Labels of the replicas.", _STRINGS, {}),
        Value("extraEnv", "Environment variables with `valueFrom`, or that `settings` does not know.", _OBJECTS, []),
        Value("extraVolumes", "Volumes, for files that settings name: CAs, deployments of the LDS.", _OBJECTS, []),
        Value("extraVolumeMounts", "Where they are mounted.", _OBJECTS, []),
        Value(
            "podDisruptionBudget.enabled",
            "Whether a drain takes one replica of a program after the other.",
            _BOOL,
            default=True,
        ),
        Value("networkPolicy.enabled", "Whether connections of all programs are limited by port.", _BOOL, default=True),
        Value(
            "networkPolicy.extraEgress",
            "Egress rules of all programs, for workers, proxies, issuers or brokers on other ports.",
            _OBJECTS,
            [],
        ),
        Value(
            "flowSchemas.enabled",
            "Whether the API server gives the provider the priority of kubelets.",
            _BOOL,
            default=True,
        ),
        Value("policies.enabled", _POLICIES, _BOOL, default=True),
        Value("policies.requireUse", _REQUIRE_USE, _BOOL, default=True),
        Value("crds.install", _CRDS, _BOOL, default=True),
        Value("namespace.create", _NAMESPACE, _BOOL),
        Value("logins.createNamespace", _LOGINS, _BOOL, default=True),
        Value("mux.enabled", _MUX, _BOOL),
        Value("mux.replicaCount", "Replicas of that program. They share the muxes.", _count(), 2),
        Value("mux.extraEnv", "Its settings, as environment variables: `[{name: …, value: …}]`.", _OBJECTS, []),
        *_default_mux(),
        Value("portal.enabled", _PORTAL, _BOOL),
        Value("portal.replicaCount", "Replicas of the portal. Each answers all requests.", _count(), 2),
        Value("portal.namespacePrefix", _PORTAL_PREFIX, _PREFIX, "nublado"),
        Value(
            "portal.settings",
            _PORTAL_SETTINGS,
            group_schema(PortalSettings, {"VKPROVIDER_PORTAL_NAMESPACE_PREFIX", "VKPROVIDER_PORTAL_PROVIDER_CA_FILE"}),
            {},
        ),
        Value("portal.config", _PORTAL_CONFIG, config_schema(PortalConfig), {}),
        Value("portal.createCookieKey", _PORTAL_KEY, _BOOL),
        Value(
            "portal.users", "Groups whose members may have a lab, as tokens name them: `[oidc:students]`.", _WORDS, []
        ),
        Value("portal.hubs", _PORTAL_HUBS, _accounts(), []),
        Value("portal.extraEnv", "Its settings, as environment variables: `[{name: …, value: …}]`.", _OBJECTS, []),
        Value("workbench.enabled", _WORKBENCH, _BOOL),
        Value("workbench.images", _BENCH_IMAGES, _listed(), []),
        Value("workbench.drivers", "CSI drivers of their volumes: `[nfs.csi.k8s.io]`.", _listed(), []),
        Value("prepull.enabled", _PREPULL, _BOOL),
        Value("prepull.schedule", "When, as a CronJob has it, in UTC.", _NAME, "0 3 * * *"),
        Value("prepull.config", _PREPULL_CONFIG, config_schema(PrepullConfig), {}),
        Value("ingress.enabled", _INGRESS, _BOOL),
        Value("ingress.className", "Its class.", _STRING, "nginx"),
        Value("ingress.host", "The name that people open.", _STRING, ""),
        Value(
            "ingress.tlsSecret",
            "Secret of type kubernetes.io/tls with a certificate of that name.",
            _STRING,
            "labs-tls",
        ),
        Value("ingress.workbenchHost", _BENCH_HOST, {"type": "string", "pattern": r"^(\*(\.[a-z0-9-]+)+)?$"}, ""),
        Value(
            "ingress.workbenchTlsSecret",
            "Secret of type kubernetes.io/tls with a certificate of that name.",
            _STRING,
            "workbench-tls",
        ),
        Value("ingress.pagePath", _PAGE_PATH, {"type": "string", "pattern": "^(/[a-z0-9-]+)?$"}, "/provider"),
        Value("ingress.annotations", "Annotations beside those for ingress-nginx.", _STRINGS, {}),
        Value("podMonitor.enabled", _MONITOR, _BOOL),
        Value("podMonitor.labels", "Labels that your Prometheus selects PodMonitors by.", _STRINGS, {}),
        Value("prometheusRule.enabled", "Whether the Prometheus operator gets the alert rules.", _BOOL),
        Value("prometheusRule.labels", "Labels that your Prometheus selects PrometheusRules by.", _STRINGS, {}),
        Value("metricsService.enabled", "A Service with annotations, for a Prometheus without the operator.", _BOOL),
        Value("dashboard.enabled", "A ConfigMap with the dashboard for Grafana.", _BOOL),
        Value(
            "dashboard.labels",
            "Labels by which Grafana's sidecar finds dashboards.",
            _STRINGS,
            {"grafana_dashboard": "1"},
        ),
    ]


def _default_mux() -> list[Value]:
    """List the values of a mux that the chart makes."""
    ports = {"type": "string", "pattern": r"^\d+(-\d+)?(,\d+(-\d+)?)*$"}
    return [
        Value("defaultMux.enabled", _DEFAULT_MUX, _BOOL),
        Value("defaultMux.namespace", "Its namespace, which is not that of the release.", _NAME, "svc-mux"),
        Value(
            "defaultMux.createNamespace", "Whether the chart makes that namespace. It stays, too.", _BOOL, default=True
        ),
        Value("defaultMux.name", "Its name: channels say `svc-mux.nowake.ai/NAME.NAMESPACE`.", _NAME, "mux"),
        Value("defaultMux.portRange", "Where its automatic ports come from.", ports, "20000-20099"),
        Value("defaultMux.maxPorts", "The most ports that it has.", {"type": "integer", "minimum": 1}, 100),
        Value("defaultMux.allowedNamespaces", "Namespaces whose Services it serves; `[*]`: all.", _WORDS, []),
        Value("defaultMux.sourceRanges", "Networks that may connect: `[192.0.2.0/24]`. Empty: all.", _WORDS, []),
        Value("defaultMux.loadBalancerClass", "Empty: the cluster's own load balancer.", _STRING, ""),
        Value("defaultMux.allocateNodePorts", "Whether its ports take node ports, as some clouds need.", _BOOL),
        Value("defaultMux.annotations", "Such as those of a cloud, or of external-dns.", _STRINGS, {}),
    ]


_DEFAULT_MUX: Final = (
    "Whether the chart makes a mux, which the program of `mux.enabled` serves. It stays when the release is "
    "uninstalled, or when this turns false: its address and numbers are known outside (docs/mux.md)."
)
_SETTINGS: Final = (
    "Environment variables of docs/reference/settings.md, such as `WORKER_PROBE_SECONDS: 10`. The chart writes them "
    "into the ConfigMap `vkprovider-settings`; a change replaces the replicas one after the other."
)
_TLS: Final = (
    "Secret of type kubernetes.io/tls for the page. While it is missing, each replica makes a certificate itself."
)
_POLICIES: Final = (
    "Whether admission policies protect lablets: who may write which annotation, and who may ask for a virtual Node. "
    "The policies `vkprovider-confine`, which confines the provider, `vkprovider-installation`, which keeps a second "
    "installation away, and `vkprovider-instructors`, `vkprovider-class-lablets`, `vkprovider-assignments` and "
    "`vkprovider-links`, which limit instructors, are always there."
)
_REQUIRE_USE: Final = "Whether the ServiceAccount of a lablet's Pod must have the verb `use` on its LabletDefinition."
_CRDS: Final = (
    "Whether the chart installs and upgrades the custom resource definitions. They stay when the release is "
    "uninstalled, or when this turns false."
)
_NAMESPACE: Final = (
    "Whether the chart makes the namespace of the release, which then stays on uninstall. For `helm template` and Argo "
    "CD; `helm install` makes it with --create-namespace, but without its label for Pod Security."
)
_LOGINS: Final = (
    "Whether the chart makes the namespace for the Secrets with the logins of workers and devices, that of the release "
    "with `-logins` after it. It stays on uninstall."
)
_MUX: Final = (
    "Whether the program that serves muxes runs beside the provider, with a ServiceAccount of its own: Services whose "
    "load balancer others share (docs/mux.md)."
)
_PORTAL: Final = (
    "Whether the portal runs beside the provider, with a ServiceAccount of its own: labs on request by REST "
    "(docs/portal.md). The policy `vkprovider-confine-portal` limits it to those."
)
_PORTAL_PREFIX: Final = (
    "What the names of namespaces of user labs begin with: `PREFIX-USER`. The policy allows the portal no others."
)
_PORTAL_SETTINGS: Final = (
    'Settings of the portal, such as `VKPROVIDER_PORTAL_USERNAME_PREFIX: "oidc:"`, in the ConfigMap '
    "`vkprovider-portal-settings`; secret ones are in the Secret of that name. A change replaces the replicas."
)
_PORTAL_CONFIG: Final = (
    "The menu, sizes, quotas, warm labs and environment, as the file of `VKPROVIDER_PORTAL_CONFIG` has them "
    '(docs/portal.md): `{sizes: [small], quotas: {default: {cpu: "4"}}}`.'
)
_PORTAL_KEY: Final = (
    "Whether the chart makes the key of cookies, once, in the Secret `vkprovider-portal-settings`, which then stays. "
    "Not where something else renders the chart (`helm template`, Argo CD), which would make another one each time."
)
_PORTAL_HUBS: Final = "ServiceAccounts of hubs, which see and end labs: `[{namespace: jhub, name: hub}]`."
_WORKBENCH: Final = (
    "Whether the portal may make workbenches beside labs (docs/workbench.md), as `portal.config` describes them with "
    "`workbenches` and `workbenchOf`. It needs `portal.enabled`."
)
_BENCH_IMAGES: Final = (
    "Images of workbenches, which the policy `vkprovider-confine-portal` then lets the portal run, and no others: "
    "`[registry.example.com/workbench:1.0]`."
)
_PREPULL: Final = (
    "Whether ordinary Nodes pull images before somebody waits for them, by a CronJob in the namespace "
    "`vkprovider-prepull`, which the chart makes (docs/prepull.md)."
)
_PREPULL_CONFIG: Final = (
    "Which images and where, as the file of `vkprovider prepull` has them: `{images: [quay.io/team/workbench:1.4]}`. "
    "Its `pullSecret`, in that namespace, is also what registries are asked with."
)
_BENCH_HOST: Final = (
    "Wildcard host at which workbenches are opened, of another registered domain: `*.wb.example.net`. It leads to the "
    "portal, which is told by VKPROVIDER_PORTAL_WORKBENCH_HOSTS unless `portal.settings` has that."
)
_INGRESS: Final = (
    "Whether an Ingress leads to the portal, and another one to the provider's page, at one name (docs/install.md)."
)
_PAGE_PATH: Final = "Where the provider's page is below that name. Empty: nowhere."
_MONITOR: Final = (
    "A PodMonitor for the Prometheus operator. Not a ServiceMonitor: each replica has metrics of its own, also one "
    "that is not ready."
)


def _spec(deployment: Mapping[str, Any]) -> int:
    replicas: int = deployment["spec"]["replicas"]
    return replicas


def _count() -> dict[str, Any]:
    return {"type": "integer", "minimum": 0}


def _digest() -> dict[str, Any]:
    return {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}


def _choice(words: str) -> dict[str, Any]:
    return {"enum": ["", *words.split()]}


def _named() -> dict[str, Any]:
    item = {"type": "object", "required": ["name"], "properties": {"name": _NAME}, "additionalProperties": False}
    return {"type": "array", "items": item}


def _listed() -> dict[str, Any]:
    """Return the schema of what stands in an expression of a policy."""
    return {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._/:@-]*$"}}


def _accounts() -> dict[str, Any]:
    properties = {"namespace": _NAME, "name": _NAME}
    item = {"type": "object", "required": [*properties], "properties": properties, "additionalProperties": False}
    return {"type": "array", "items": item}


def _resources() -> dict[str, Any]:
    amounts = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    parts = {"requests": amounts, "limits": amounts, "claims": _OBJECTS}
    return {"type": "object", "properties": parts, "additionalProperties": False}


def settings_schema(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of `settings`: every setting but secrets and what the chart itself sets.

    Numbers and booleans may also be given as strings, as they stand in a ConfigMap.

    Args:
        container: Of the Deployment.
    """
    fixed = {entry["name"] for entry in container["env"]} | BY_CHART
    known: dict[str, Any] = {}
    for field in Settings.model_fields.values():
        group = field.annotation
        assert isinstance(group, type)  # noqa: S101 (a Group)
        assert issubclass(group, Group)  # noqa: S101 (same)
        known |= _variables(group)
    return _settings_of(known, fixed)


def group_schema(group: type[Group], fixed: Container[str]) -> dict[str, Any]:
    """Return the schema of the settings of one group, but for secrets and what the chart sets."""
    return _settings_of(_variables(group), fixed)


def config_schema(model: type[Model]) -> dict[str, Any]:
    """Return the schema of a file that a program reads, at its first level; the program checks the rest."""
    names = {field.alias or name for name, field in model.model_fields.items()}
    return {"type": "object", "properties": {name: {} for name in sorted(names)}, "additionalProperties": False}


def _variables(group: type[Group]) -> dict[str, Any]:
    described = group.model_json_schema().get("properties", {})
    return {name: each for name, each in described.items() if name.isupper()}  # the others are not variables


def _settings_of(known: Mapping[str, Any], fixed: Container[str]) -> dict[str, Any]:
    properties = {name: _setting(each) for name, each in known.items() if name not in fixed and not _is_secret(each)}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    branches: list[Mapping[str, Any]] = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return branches


def _is_secret(schema: Mapping[str, Any]) -> bool:
    return any(each.get("format") == "password" for each in _branches(schema))


def _setting(schema: Mapping[str, Any]) -> dict[str, Any]:
    [branch] = _branches(schema)
    kept = {key: branch[key] for key in _KEPT if key in branch}
    if kept.get("type") == "boolean":
        kept = {"enum": [True, False, "true", "false"]}
    elif kept.get("type") in {"integer", "number"}:
        kept["type"] = [kept["type"], "string"]
    return {"description": schema["description"], **kept}


_KEPT: Final = (
    "type",
    "enum",
    "const",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "pattern",
    "minLength",
)


def schema(wanted: list[Value]) -> str:
    """Render values.schema.json."""
    root: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart vkprovider",
        "type": "object",
        "additionalProperties": False,
        "properties": {"global": {"description": "Of a chart that this one is part of.", "type": "object"}},
    }
    for value in wanted:
        parent = root
        *above, last = value.name.split(".")
        for word in above:
            empty = {"type": "object", "additionalProperties": False, "properties": {}}
            parent = parent["properties"].setdefault(word, empty)
        parent["properties"][last] = {"description": value.says, "default": value.default, **value.schema}
    return json.dumps(root, indent=2, ensure_ascii=False) + "\n"


def values_yaml(wanted: list[Value]) -> str:
    """Render values.yaml: every value with its description and default."""
    return "".join(_value_lines(wanted))


def _value_lines(wanted: list[Value]) -> Iterator[str]:
    open_: list[str] = []
    for value in wanted:
        *above, last = value.name.split(".")
        if not above or above != open_:
            yield "\n"
        if above and above != open_:
            yield f"{above[0]}:\n"
        open_ = above
        pad = "  " * len(above)
        comment = textwrap.wrap(value.says, _WIDTH - len(pad), break_long_words=False, break_on_hyphens=False)
        yield from (f"{pad}# {line}\n" for line in comment)
        yield textwrap.indent(yaml.safe_dump({last: value.default}, sort_keys=False, width=_WIDTH), pad)


def table_of(wanted: list[Value]) -> str:
    """Render the table of the chart's page."""
    rows = [("Value", "Default", "What it is")]
    for value in wanted:
        default = "see values.yaml" if len(json.dumps(value.default)) > _LONG else f"`{json.dumps(value.default)}`"
        rows.append((f"`{value.name}`", default, value.says))
    return table(rows)


_LONG: Final = 40
"""Defaults of more characters do not stand in the table."""
