"""Every field of a Pod's spec, as the real API server's schema has it: acted on, ignored with a word, or refused.

A new version of Kubernetes brings new fields; each of them needs a row here.
"""

from typing import Any, Final

import msgspec
import pytest

from tests.component.controllers.harness import World
from tests.support.apiserver import Admin
from vkprovider.lablet.slimming import WholePod, slim_pod
from vkprovider.platform.objects import ENV

ACTED_ON: Final = {
    "PodSpec": {
        "activeDeadlineSeconds",
        "containers",
        "nodeName",
        "overhead",
        "readinessGates",
        "restartPolicy",
        "runtimeClassName",
    },
    "Container": {"name", "image", "env", "envFrom"},
}
"""Fields that vkprovider acts on; variables are parameters of the topology."""
ELSEWHERE: Final = {
    "PodSpec": {
        "affinity": "scheduler",
        "automountServiceAccountToken": "admission",
        "evictionResponders": "those who answer EvictionRequests; from 1.37 on",
        "hostname": "DNS names in EndpointSlices; StatefulSets and indexed Jobs set it",
        "nodeSelector": "scheduler",
        "preemptionPolicy": "scheduler",
        "priority": "scheduler",
        "priorityClassName": "admission",
        "schedulerName": "scheduler",
        "schedulingGates": "scheduler",
        "schedulingGroup": "scheduler",
        "serviceAccount": "admission: who may use a definition",
        "serviceAccountName": "admission: who may use a definition",
        "subdomain": "DNS names in EndpointSlices; StatefulSets set it",
        "tolerations": "scheduler",
        "topologySpreadConstraints": "scheduler",
    },
    "Container": {
        "stdin": "kubectl attach",
        "tty": "kubectl attach",
    },
}
"""Fields that do their work without a kubelet: by their reader."""
IDLE: Final = {
    "PodSpec": {
        "enableServiceLinks": "the API server sets it on every Pod",
        "hostUsers": "confines processes",
        "imagePullSecrets": "no image is pulled; admission copies them from the ServiceAccount",
        "securityContext": "confines processes; Pod Security Standards require it",
    },
    "Container": {
        "imagePullPolicy": "no image is pulled; the API server sets it on every container",
        "resizePolicy": "a resize is refused; the API server sets it on every container",
        "securityContext": "confines processes; Pod Security Standards require it",
    },
}
"""Fields about processes and images, of which a lablet has none: nothing that they promise is missing."""
REFUSED: Final = {"PodSpec": {"initContainers", "ephemeralContainers"}, "Container": set[str]()}
"""Fields with which a Pod is no lablet, or that a policy refuses."""
PVC: Final = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]}
COMMAND: Final = {"exec": {"command": ["a"]}}
CLAIM: Final = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
IGNORED: Final[dict[str, dict[str, Any]]] = {
    "PodSpec": {
        "dnsConfig": {"options": [{"name": "edns0"}]},
        "dnsPolicy": "Default",
        "hostAliases": [{"ip": "198.51.100.1", "hostnames": ["a"]}],
        "hostIPC": True,
        "hostNetwork": True,
        "hostPID": True,
        "hostnameOverride": "a",
        "os": {"name": "linux"},
        "resourceClaims": [CLAIM],
        "resources": {"limits": {"cpu": "1"}},
        "setHostnameAsFQDN": True,
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": 600,
        "volumes": [{"name": "a", "emptyDir": {}}],
    },
    "Container": {
        "args": ["a"],
        "command": ["a"],
        "lifecycle": {"preStop": COMMAND},
        "livenessProbe": COMMAND,
        "ports": [{"containerPort": 80}],
        "readinessProbe": COMMAND,
        "resources": {"limits": {"cpu": "1"}},
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
        "startupProbe": COMMAND,
        "stdinOnce": True,
        "terminationMessagePath": "/a",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeDevices": [{"name": "a", "devicePath": "/dev/a"}],
        "volumeMounts": [{"name": "a", "mountPath": "/a"}],
        "workingDir": "/a",
    },
}
"""Fields that a kubelet acts on and vkprovider does not, each with a value that asks for something."""
NEEDS: Final[dict[str, dict[str, Any]]] = {
    "volumeDevices": PVC,
    "volumeMounts": {"volumes": [{"name": "a", "emptyDir": {}}]},
}
"""What the API server requires of the Pod besides."""
NEEDS_IN_CONTAINER: Final[dict[str, dict[str, Any]]] = {"restartPolicyRules": {"restartPolicy": "Never"}}
WORDS: Final = {"resources": "resources.limits"}
"""Names of fields in the Event, where they are not the field's."""


async def stored(admin: Admin, namespace: str, spec: dict[str, Any], container: dict[str, Any]) -> tuple[str, ...]:
    """Let the API server complete a Pod, without storing it; return the names of fields that have no effect."""
    containers = [{"name": "lab", "image": "netlab", "resources": {"requests": {"cpu": "1m"}}}]
    containers.append({"name": "r1", "image": "netlab", **container})
    body = {"metadata": {"name": "p"}, "spec": {**spec, "containers": containers}}
    made = await admin.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    assert "volumeMounts" in made["spec"]["containers"][0], "admission mounts a token"
    return slim_pod(msgspec.json.decode(msgspec.json.encode(made), type=WholePod)).spec.other_fields


@pytest.mark.parametrize("kind", ["PodSpec", "Container"])
async def test_each_field_of_the_schema_has_a_row(world: World, kind: str) -> None:
    answer = await world.admin.request("GET", "/openapi/v3/api/v1")
    schema = set(answer["components"]["schemas"][f"io.k8s.api.core.v1.{kind}"]["properties"])
    rows = [*ACTED_ON[kind], *ELSEWHERE[kind], *IDLE[kind], *REFUSED[kind], *IGNORED[kind]]
    assert len(rows) == len(set(rows)), "a field has one row"
    assert set(rows) == schema


async def test_fields_that_have_no_effect_are_named(world: World) -> None:
    for kind, samples in IGNORED.items():
        for field, value in samples.items():
            spec, container = dict(NEEDS.get(field, {})), dict(NEEDS_IN_CONTAINER.get(field, {}))
            (spec if kind == "PodSpec" else container)[field] = value
            found = await stored(world.admin, world.namespace, spec, container)
            assert set(found) == {WORDS.get(each, each) for each in {field, *NEEDS.get(field, {}), *container}}, field


async def test_a_plain_pod_has_none(world: World) -> None:
    """What the API server, admission, StatefulSets and quotas put into every Pod is nobody's wish."""
    confined = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"hostname": "web-0", "subdomain": "web", "securityContext": confined, "hostUsers": False}
    more = {"securityContext": {"allowPrivilegeEscalation": False}, "stdin": True, "tty": True}
    assert await stored(world.admin, world.namespace, {}, {}) == ()
    assert await stored(world.admin, world.namespace, spec, more) == ()
    assert await stored(world.admin, world.namespace, {}, {"env": [{"name": "A", "value": "a"}]}) == (ENV,)


async def test_limits_that_a_limit_range_sets_are_nobodys_wish(world: World) -> None:
    """Quotas of limits need them; the example quota.yaml has such a LimitRange."""
    limits = [{"type": "Container", "default": {"cpu": "10m"}, "defaultRequest": {"cpu": "1m"}}]
    path = f"/api/v1/namespaces/{world.namespace}/limitranges"
    await world.admin.create(path, {"metadata": {"name": "containers"}, "spec": {"limits": limits}})
    assert await stored(world.admin, world.namespace, {}, {}) == ()
