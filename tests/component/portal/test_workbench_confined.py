"""Which Pod for an ordinary node the portal's own token can make: a workbench as it is described, and no other.

Each field that could break out is tried by that token on the real API server. And what a workbench's token can do: open
the consoles of its own lab.
"""

import copy
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.allowing import workbenches_allowed
from tests.component.portal.test_portal_confined import (
    MARK,
    NAMESPACES,
    OWN,
    RBAC,
    Thief,
    admin,
    binding,
    client_of,
    namespace,
    pod,
    powerful,
    thief,
)
from tests.support.apiserver import SYSTEM, Admin, ApiServer, Refused
from vkprovider.lablet.podspec import RESTRICTED_CONTAINER
from vkprovider.portal.pure.benchpod import BenchUser, bench_pod_spec
from vkprovider.portal.pure.workbench import WorkbenchConfig

Json = dict[str, Any]
IMAGE, INIT_IMAGE, DRIVER = "registry.example.com/workbench:1", "registry.example.com/init:1", "nfs.csi.k8s.io"
CONFIG: Final = WorkbenchConfig.model_validate(
    {
        "image": IMAGE,
        "home": "home",
        "volumes": {"home": {"csi": {"driver": DRIVER, "volumeAttributes": {"share": "/{key}"}}}},
        "secrets": ["netrc"],
        "pullSecret": True,
        "init": {"image": INIT_IMAGE},
    }
)
PODS: Final = f"{NAMESPACES}/{OWN}/pods"
NAME: Final = "nb-thief-workbench"
VAP: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
__all__ = ["admin", "powerful", "thief"]


def workbench() -> Json:
    """Return a Pod as the portal makes it."""
    user = BenchUser("thief", 4711, 2000, {"lab": 3000})
    spec = bench_pod_spec(CONFIG, "", user, provision=True)
    return {"metadata": {"name": NAME, "labels": {"vkprovider.io/workbench": "true", MARK: SYSTEM}}, "spec": spec}


@pytest.fixture
async def bench(apiserver: ApiServer, thief: Thief, admin: Admin) -> AsyncIterator[Thief]:
    """The thief, where workbenches are allowed."""
    account = f"{NAMESPACES}/{OWN}/serviceaccounts"
    if await admin.get(f"{account}/{NAME}") is None:
        await admin.create(account, {"metadata": {"name": NAME}})
    async with workbenches_allowed(apiserver, admin, [IMAGE, INIT_IMAGE], [DRIVER]):
        yield thief


def spec_of(body: Json) -> Json:
    found: Json = body["spec"]
    return found


Change = Callable[[Json], object]


def on_pod(**fields: Any) -> Change:
    return lambda body: spec_of(body).update(fields)


def on_security(**fields: Any) -> Change:
    return lambda body: spec_of(body)["securityContext"].update(fields)


def with_volume(**source: Any) -> Change:
    return lambda body: spec_of(body)["volumes"].append({"name": "more", **source})


def on_each(**fields: Any) -> Iterator[tuple[str, Change]]:
    """Yield the change of each kind of container."""
    for kind in ("containers", "initContainers"):
        yield kind, partial(_update, kind, fields)


def each_security(**fields: Any) -> Iterator[tuple[str, Change]]:
    """Yield the change of the security of each kind of container."""
    for kind in ("containers", "initContainers"):
        yield kind, partial(_update, kind, {"securityContext": {**RESTRICTED_CONTAINER, **fields}})


def _update(kind: str, fields: Json, body: Json) -> None:
    spec_of(body)[kind][0].update(copy.deepcopy(fields))


def violations() -> Iterator[tuple[str, str, Change]]:
    """Yield what breaks the shape: its name, the words of the refusal, and the change of a Pod that is right."""
    host, restricted, box = "no field of the host", "A workbench is restricted", "A container of a workbench is"
    for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        yield field, host, on_pod(**{field: True})
    yield "hostUsers", host, on_pod(hostUsers=True)
    yield "nodeName", host, on_pod(nodeName="node-1")
    yield "no os", host, on_pod(nodeSelector={})
    yield "affinity", host, on_pod(affinity={"nodeAffinity": {}})
    yield "toleration of all", host, on_pod(tolerations=[{"operator": "Exists"}])
    control = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    yield "toleration", host, on_pod(tolerations=[control])
    virtual = {"key": "vkprovider.io/virtual-node", "operator": "Exists"}
    yield "toleration of virtual nodes", f"may tolerate vkprovider.io/|{host}", on_pod(tolerations=[virtual])
    yield "priority", host, on_pod(priorityClassName="system-node-critical")
    yield "hostAliases", host, on_pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["a"]}])
    yield "dns of the node", host, on_pod(dnsPolicy="Default")
    yield "root", restricted, on_security(runAsUser=0)
    yield "runAsUser 999", restricted, on_security(runAsUser=999)
    yield "runAsGroup 0", restricted, on_security(runAsGroup=0)
    yield "no user", restricted, on_security(runAsUser=None)
    yield "no group", restricted, on_security(runAsGroup=None)
    yield "supplementalGroups", restricted, on_security(supplementalGroups=[2000, 0])
    yield "fsGroup", restricted, on_security(fsGroup=0)
    yield "runAsNonRoot", restricted, on_security(runAsNonRoot=False)
    yield "seccomp", restricted, on_security(seccompProfile={"type": "Unconfined"})
    yield "no seccomp", restricted, on_security(seccompProfile=None)
    yield "sysctls", restricted, on_security(sysctls=[{"name": "net.ipv4.ip_forward", "value": "1"}])
    yield "selinux", restricted, on_security(seLinuxOptions={"type": "spc_t"})
    yield "apparmor", restricted, on_security(appArmorProfile={"type": "Unconfined"})
    yield "no security", restricted, on_pod(securityContext={})
    for kind, change in (
        *each_security(privileged=True, allowPrivilegeEscalation=True),
        *each_security(allowPrivilegeEscalation=True),
        *each_security(runAsUser=0, runAsNonRoot=False),
        *each_security(runAsUser=0),
        *each_security(capabilities={"drop": ["ALL"], "add": ["NET_RAW"]}),
        *each_security(capabilities={"drop": ["NET_RAW"]}),
        *each_security(capabilities={}),
        *each_security(seccompProfile={"type": "Unconfined"}),
        *each_security(seLinuxOptions={"type": "spc_t"}),
        *on_each(securityContext=None),
        *on_each(ports=[{"containerPort": 8888, "hostPort": 8888}]),
        ("containers", lambda body: spec_of(body)["containers"][0].update(lifecycle=HOOK)),
        ("containers", lambda body: spec_of(body)["containers"][0].update(livenessProbe=PROBE)),
        ("containers", lambda body: spec_of(body)["containers"][0].update(readinessProbe=PROBE)),
        ("initContainers", lambda body: spec_of(body)["initContainers"][0].update(restartPolicy="Always")),
    ):
        yield f"security of {kind}", box, change
    for kind, change in on_each(image="registry.example.com/workbench:2"):
        yield f"image of {kind}", "The images of workbenches are", change
    for kind, change in (
        *on_each(resources={}),
        *on_each(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        *on_each(resources={"limits": {"cpu": "1", "ephemeral-storage": "1Gi"}}),
        *on_each(resources={"limits": {"memory": "1Gi", "ephemeral-storage": "1Gi"}}),
    ):
        yield f"limits of {kind}", "has limits of cpu, memory and", change
    volumes = "none is of the host"
    yield "hostPath", volumes, with_volume(hostPath={"path": "/"})
    yield "nfs", volumes, with_volume(nfs={"server": "a", "path": "/"})
    yield "claim", volumes, with_volume(persistentVolumeClaim={"claimName": "a"})
    yield "other driver", volumes, with_volume(csi={"driver": "hostpath.csi.k8s.io"})
    secret = {"driver": DRIVER, "nodePublishSecretRef": {"name": "a"}}
    yield "secret of a driver", volumes, with_volume(csi=secret)
    yield "memory", volumes, with_volume(emptyDir={"medium": "Memory"})
    token = {"serviceAccountToken": {"path": "a", "expirationSeconds": 86400}}
    yield "long token", volumes, with_volume(projected={"sources": [token]})
    other = {"serviceAccountToken": {"path": "a", "audience": "vault"}}
    yield "token for others", volumes, with_volume(projected={"sources": [other]})
    named = "A workbench is named"
    yield "no label", named, lambda body: body["metadata"].update(labels={MARK: SYSTEM})
    yield "name", named, lambda body: body["metadata"].update(name="nb-thief")
    yield "account", named, on_pod(serviceAccountName="default")
    yield "token by itself", named, on_pod(automountServiceAccountToken=True)


HOOK: Final = {"postStart": {"httpGet": {"port": 80, "host": "192.0.2.1"}}}
PROBE: Final = {"httpGet": {"port": 80, "host": "192.0.2.1"}}
VIOLATIONS: Final = list(violations())


async def test_a_workbench_is_made_only_where_its_image_is_listed(bench: Thief, admin: Admin) -> None:
    made = await bench.send("POST", PODS, workbench())
    assert made["spec"]["serviceAccountName"] == NAME
    label = {"metadata": {"labels": {"vkprovider.io/request": "a"}}}
    await bench.send("PATCH", f"{PODS}/{NAME}", label)
    other = {"spec": {"containers": [{**made["spec"]["containers"][0], "image": "registry.example.com/other:1"}]}}
    await bench.refused("The images of workbenches are", "PATCH", f"{PODS}/{NAME}", other)
    await bench.send("POST", f"{PODS}?dryRun=All", pod())  # a lablet as ever
    await admin.delete(f"{PODS}/{NAME}", grace_s=0)


async def test_each_violation_is_refused(bench: Thief) -> None:
    let_through = []
    for name, words, change in VIOLATIONS:
        body = workbench()
        change(body)
        try:
            await bench.send("POST", f"{PODS}?dryRun=All", body)
        except Refused as refused:
            if not re.search(words, str(refused)):
                let_through.append((name, str(refused)))
        else:
            let_through.append((name, "made"))
    assert not let_through, let_through


async def test_its_role_is_bound_to_its_account_alone(bench: Thief) -> None:
    path = f"{RBAC}/namespaces/{OWN}/rolebindings"
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": OWN}
    made = {**binding("vkprovider-workbench"), "metadata": {"name": NAME}, "subjects": [account]}
    await bench.send("POST", f"{path}?dryRun=All", made)
    for subject in (
        {**account, "name": "default"},
        {**account, "namespace": SYSTEM},
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "thief"},
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"},
    ):
        await bench.refused("and no other role", "POST", path, {**made, "subjects": [subject]})


async def test_the_portal_does_not_label_a_namespace_for_others(bench: Thief) -> None:
    words = "Of the labels of a Namespace the portal writes those of vkprovider.io"
    level = "pod-security.kubernetes.io/enforce"
    for key, text in ((level, "privileged"), (level, "restricted"), ("istio-injection", "enabled"), ("a", "b")):
        await bench.refused(words, "PATCH", f"{NAMESPACES}/{OWN}", {"metadata": {"labels": {key: text}}})
    made = namespace("nublado-new")
    for key, text in ((level, "privileged"), (level, "baseline"), ("istio-injection", "enabled")):
        more = {**made["metadata"], "labels": {**made["metadata"]["labels"], key: text}}
        await bench.refused(words, "POST", NAMESPACES, {"metadata": more})
    more = {**made["metadata"], "labels": {**made["metadata"]["labels"], level: "restricted"}}
    await bench.send("POST", f"{NAMESPACES}?dryRun=All", {"metadata": more})
    await bench.send("PATCH", f"{NAMESPACES}/{OWN}", {"metadata": {"labels": {"vkprovider.io/class": "friday"}}})


async def test_an_admin_s_label_stays(bench: Thief, admin: Admin) -> None:
    level = "pod-security.kubernetes.io/enforce"
    await admin.patch(f"{NAMESPACES}/{OWN}", {"metadata": {"labels": {level: "restricted"}}})
    words = "Of the labels of a Namespace"
    for text in (None, "privileged"):
        await bench.refused(words, "PATCH", f"{NAMESPACES}/{OWN}", {"metadata": {"labels": {level: text}}})
    await bench.send("POST", f"{PODS}?dryRun=All", workbench())  # which is all that this level asks


async def test_whatever_rights_it_is_given_no_container_is_added_later(
    bench: Thief, powerful: Thief, admin: Admin
) -> None:
    await bench.send("POST", PODS, workbench())
    box = {"name": "debug", "image": "registry.example.com/evil:1", "securityContext": {"privileged": True}}
    body = {"spec": {"ephemeralContainers": [box]}}
    words = "The portal writes Namespaces"
    await powerful.refused(words, "PATCH", f"{PODS}/{NAME}/ephemeralcontainers", body)
    await powerful.refused(words, "POST", f"{PODS}/{NAME}/exec?command=sh&container=workbench&stdout=true")
    await admin.delete(f"{PODS}/{NAME}", grace_s=0)


async def test_the_token_of_a_workbench_opens_the_consoles_of_its_lab_alone(
    bench: Thief, admin: Admin, apiserver: ApiServer
) -> None:
    await bench.send("POST", PODS, pod())
    await bench.send("POST", PODS, workbench())
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": OWN}
    made = {**binding("vkprovider-workbench"), "metadata": {"name": NAME}, "subjects": [account]}
    await bench.send("POST", f"{RBAC}/namespaces/{OWN}/rolebindings", made)
    token = await admin.request("POST", f"{NAMESPACES}/{OWN}/serviceaccounts/{NAME}/token", {"spec": {}})
    headers = {"Authorization": f"Bearer {token['status']['token']}"}
    async with await client_of(apiserver) as http:
        http.headers.update(headers)
        mine = Thief(http)

        async def bound() -> bool:
            try:
                await mine.send("GET", f"{PODS}/nb-thief")
            except Refused:
                return False
            return True

        await eventually(bound, "the binding")
        for part in ("exec", "attach"):
            query = f"{part}?container=lab&command=x&stdout=true"
            with pytest.raises(Refused) as reached:  # no node is there, and nothing refuses it
                await mine.send("POST", f"{PODS}/nb-thief/{part}?container=lab&command=x&stdout=true")
            assert reached.value.status != 403, str(reached.value)
            with pytest.raises(Refused, match="vkprovider-confine-workbench"):
                await mine.send("POST", f"{PODS}/{NAME}/{query.replace('=lab', '=workbench')}")
        for method, path in (
            ("GET", f"{NAMESPACES}/{OWN}/secrets/nb-thief"),
            ("GET", f"{NAMESPACES}/{OWN}/pods"),
            ("GET", f"{NAMESPACES}/{SYSTEM}/pods/nb-thief"),
            ("DELETE", f"{PODS}/nb-thief"),
            ("POST", f"{PODS}/nb-thief/portforward?ports=1"),
            ("GET", NAMESPACES),
        ):
            with pytest.raises(Refused, match="403"):
                await mine.send(method, path)
    for name in ("nb-thief", NAME):
        await admin.delete(f"{PODS}/{name}", grace_s=0)
    await admin.delete(f"{RBAC}/namespaces/{OWN}/rolebindings/{NAME}")
