"""An installation with workbenches on an ordinary Node, and its learners, who ask a portal that runs as Pods."""

import base64
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support import csidriver
from tests.support.cluster import is_ready
from tests.support.containers import IMAGE, WORKBENCH
from tests.support.extra import SYSTEM
from tests.support.installation import MANIFESTS
from tests.support.ordinary import Ordinary
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox.node import needs, room

LEARNERS: Final = "learners"
CLASS: Final = "friday"
PORTAL_HOST: Final = "portal.test"
BENCH_DOMAIN: Final = "wb.test"
"""Of another site than the portal, as docs/workbench.md asks."""
PORT: Final = 8083
KIND: Final = "pyats"
PARAMETERS: Final = (
    {"name": "SEAT", "type": "integer", "help": "The number on your desk."},
    {"name": "SITE", "default": "campus-1", "pattern": "campus-[0-9]"},
)
_ROUTES: Final = "/nublado/spawner/v1"
Json = dict[str, Any]


def config(made: Ordinary) -> Json:
    """Return the configuration of the portal: workbenches with a home and networks that have workers in them."""
    attributes = {"share": "/{key}"}
    kind = {
        "image": WORKBENCH,
        "home": "home",
        "volumes": {"home": {"csi": {"driver": csidriver.DRIVER, "volumeAttributes": attributes}}},
        "egress": [{"cidr": made.node.workers}, {"cidr": "168.0.0.0/6"}],  # the latter has link-local addresses in it
    }
    return {"workbenches": {KIND: kind}, "workbenchOf": {"images": {"netlab": KIND, "asked": KIND}}}


def write_overlay(made: Ordinary) -> Path:
    """Write an overlay of all components and workbenches, with settings and lists; return its folder."""
    folder = made.directory / "benches"
    folder.mkdir()
    settings = {
        "VKPROVIDER_PORTAL_USERNAME_PREFIX": f"system:serviceaccount:{LEARNERS}:",
        "VKPROVIDER_PORTAL_WORKBENCH_HOSTS": f"*.{BENCH_DOMAIN}:{PORT}",
        "VKPROVIDER_PORTAL_CONFIG": "/etc/vkprovider/portal/portal.yaml",
    }
    key = {"VKPROVIDER_PORTAL_COOKIE_KEY": base64.b64encode(os.urandom(32)).decode()}
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:serviceaccounts:{LEARNERS}"}
    own = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEARNERS}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLASS}},
        _in_system("v1", "ConfigMap", "vkprovider-portal-settings", data=settings),
        _in_system("v1", "Secret", "vkprovider-portal-settings", stringData=key),
        _in_system("v1", "ConfigMap", "vkprovider-portal-config", data={"portal.yaml": yaml.safe_dump(config(made))}),
        _binding(SYSTEM, "vkprovider-portal-user", group),
        _binding(CLASS, "vkprovider-class-learner", group),
        _binding(CLASS, "vkprovider-instructor", {"kind": "ServiceAccount", "name": "ida", "namespace": LEARNERS}),
    ]
    (folder / "own.yaml").write_text(yaml.safe_dump_all(own))
    lists = {"images": WORKBENCH, "drivers": csidriver.DRIVER}
    patch = [
        operation
        for place, (variable, text) in enumerate(lists.items(), 1)
        for operation in (
            {"op": "test", "path": f"/spec/variables/{place}/name", "value": variable},
            {"op": "replace", "path": f"/spec/variables/{place}/expression", "value": f"['{text}']"},
        )
    ]
    policy = {"kind": "ValidatingAdmissionPolicy", "name": "vkprovider-confine-portal"}
    below = [os.path.relpath(MANIFESTS / each, folder) for each in ("overlays/complete", "components/workbench")]
    name, _, tag = IMAGE.partition(":")
    kustomization = {
        "resources": [*below, "own.yaml"],
        "images": [{"name": "vkprovider", "newName": name, "newTag": tag}],
        "patches": [{"target": policy, "patch": yaml.safe_dump(patch)}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return folder


def _in_system(version: str, kind: str, name: str, **more: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": SYSTEM}, **more}


def _binding(namespace: str, role: str, subject: Json) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def install_with_workbenches(made: Ordinary) -> None:
    """Install everything with workbenches and a driver of homes, connect the worker, and put two labs on the menu."""
    made.apply(*csidriver.csi_driver(made.node, WORKBENCH))
    made.kubectl("label", "node", made.node.name, "relay.vkprovider.io/host=true", "--overwrite")
    made.kubectl("apply", "-k", str(write_overlay(made)))
    made.rolled_out()
    made.connect()
    made.wait_node()
    for family, parameters in (("netlab", ()), ("asked", PARAMETERS)):
        lab = definition(
            f"{family}-lab", topology({"r1": "iosv"}, {"r1": ["serial:4567"]}), parameters=list(parameters)
        )
        lab["metadata"]["labels"] = {"vkprovider.io/family": family, "vkprovider.io/size": "small"}
        made.apply(lab)
        until(lambda family=family: made.get("runtimeclass", f"{family}-lab"), 30)  # type: ignore[misc]

    def registered() -> bool:
        drivers = made.get("csinode", made.node.name)["spec"].get("drivers") or []
        assert csidriver.DRIVER in {each["name"] for each in drivers}, made.story("kube-system")
        return True

    until(registered, 60)


def portal_address(made: Ordinary) -> str:
    """Return the address of a Pod of the portal, which the host reaches."""
    pods = made.items("pods", f"--namespace={SYSTEM}", "--selector=app.kubernetes.io/name=vkprovider-portal")
    return str(next(pod for pod in pods if is_ready(pod))["status"]["podIP"])


def token_of(made: Ordinary, name: str) -> str:
    """Return the token of a learner, who may be new."""
    objects = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    made.apply(objects, namespace=LEARNERS)
    return made.kubectl("create", "token", name, f"--namespace={LEARNERS}", "--duration=2h").strip()


def ask(made: Ordinary, method: str, path: str, token: str, body: object = None) -> tuple[int, str]:
    """Send a request of a script to the portal; return status and text."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return send(made, method, _ROUTES + path, headers, json.dumps(body).encode() if body is not None else None)


def send(made: Ordinary, method: str, path: str, headers: dict[str, str], data: bytes | None = None) -> tuple[int, str]:
    """Send a request to the portal, at whatever host the headers say; return status and text."""
    request = urllib.request.Request(f"https://{portal_address(made)}:{PORT}{path}", data, headers, method=method)
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=ssl._create_unverified_context()),  # noqa: S323 (made by each replica)
        _NoRedirect,
    )
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def create_lab(made: Ordinary, user: str, **options: Any) -> None:
    """Ask for the lab of a user, until what that needs is known."""
    token = token_of(made, user)
    body = {"options": {"image_list": ["netlab:1.0.0"], "size": ["small"], **options}, "env": {}}

    def accepted() -> bool:
        status, text = ask(made, "POST", f"/labs/{user}/create", token, body)
        assert status == 303, (status, text)
        return True

    until(accepted, 60, every_s=1)


def ready_workbench(made: Ordinary, user: str, within_s: float = 240) -> Json:
    """Return the Pod of a user's workbench once it is Ready."""
    namespace = f"nublado-{user}"

    def ready() -> Json:
        found = {pod["metadata"]["name"]: pod for pod in made.items("pods", f"--namespace={namespace}")}
        assert {f"nb-{user}", f"nb-{user}-workbench"} <= found.keys(), [*found]
        assert all(is_ready(pod) for pod in found.values()), {name: pod["status"] for name, pod in found.items()}
        return found[f"nb-{user}-workbench"]

    try:
        return until(ready, within_s, every_s=1)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{made.story(namespace)}") from error


def within(made: Ordinary, user: str, *words: str, text: str | None = None) -> str:
    """Run a program in a workbench; return what it prints."""
    where = (f"nb-{user}-workbench", f"--namespace=nublado-{user}", "--container=workbench")
    stdin = ("--stdin",) if text is not None else ()
    return made.kubectl("exec", *stdin, *where, "--", *words, input=text)


def at_node(made: Ordinary, *words: str, text: str | None = None, check: bool = True) -> str:
    """Run a program of this machine among the mounts, the processes and the network of the Node, as root."""
    there = [needs.find_program("nsenter"), f"--target={room.pid_of(made.sandbox.layout)}", "--net", "--mount", "--pid"]
    done = subprocess.run([*there, *words], input=text, capture_output=True, text=True, check=check, timeout=300)  # noqa: S603 (of the test)
    return done.stdout
