"""The comparison of rights granted with rights used."""

import json
import re
from pathlib import Path

import pytest

from tools.rights import RBAC, USER, offers, uses_of
from vkprovider import controllers
from vkprovider.doctor.rights import SHIPPED_NAMESPACE, Right, rights_of
from vkprovider.kube.api import CONFIG_MAPS, RUNTIME_CLASSES, SECRETS, WORKERS
from vkprovider.kube.client import user_agent

PATCH = Right("patch", "", "nodes/status")
SECRET = Right("get", "", "secrets", "vkprovider-system")
SYSTEM = Right("get", "", "namespaces", name="kube-system")
TOPOLOGY = Right("get", "", "configmaps")


def line(right: Right, *, code: int = 200, user: str = USER, agent: str = user_agent("replica-1")) -> bytes:
    resource, _, subresource = right.resource.partition("/")
    about = {
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
        "apiGroup": right.group,
    }
    event = {"verb": right.verb, "user": {"username": user}, "userAgent": agent, "objectRef": about}
    return json.dumps(event | {"responseStatus": {"code": code}}).encode()


def test_uses_are_counted_by_the_right_that_allowed_them() -> None:
    log = [
        line(PATCH._replace(name="vnode.a")),
        line(PATCH._replace(name="vnode.b"), code=409),
        line(SECRET._replace(name="cml-1"), code=404),
        line(SYSTEM),
        json.dumps(
            {"verb": "get", "user": {"username": USER}, "userAgent": user_agent("a"), "requestURI": "/version"}
        ).encode(),
    ]
    uses = uses_of([PATCH, SECRET, SYSTEM], [], log)
    assert uses.granted == {PATCH: 2, SECRET: 1, SYSTEM: 1}
    assert not uses.unused
    assert not uses.beyond


@pytest.mark.parametrize(
    "used",
    [
        SECRET._replace(verb="list"),
        SECRET._replace(namespace="default"),
        SYSTEM._replace(name="default"),
        PATCH._replace(resource="nodes"),
        PATCH._replace(group="example.com"),
    ],
)
def test_use_of_another_right_is_said_and_uses_none(used: Right) -> None:
    uses = uses_of([PATCH, SECRET, SYSTEM], [], [line(used)])
    assert uses.unused == [PATCH, SECRET, SYSTEM]
    assert uses.beyond == {used._replace(name=""): 1}
    assert "NOT GRANTED" in uses.table()
    assert uses.table().count("UNUSED") == 3


def test_what_was_forbidden_and_what_others_do_uses_no_right() -> None:
    others = [line(PATCH, user="system:node:a"), line(SECRET, agent="vkprovider/0.1.0"), line(SECRET, agent="kubectl")]
    uses = uses_of([PATCH], [], [line(PATCH, code=403), *others])
    assert uses.unused == [PATCH]
    assert not uses.beyond


def test_a_role_that_an_admin_binds_has_rights_of_its_own() -> None:
    granted, offered = [TOPOLOGY._replace(namespace="vkprovider-system")], [("reader", TOPOLOGY)]
    own, other = (line(TOPOLOGY._replace(namespace=name)) for name in ("vkprovider-system", "team"))
    assert uses_of(granted, offered, [own]).unused == [TOPOLOGY]
    uses = uses_of(granted, offered, [own, other])
    assert (list(uses.granted.values()), list(uses.offered.values())) == ([1], [1])
    assert not uses.beyond
    assert "configmaps  where reader is bound" in uses.table()


def test_shipped_rights_name_each_right_once() -> None:
    rights = rights_of(Path(RBAC).read_text(), SHIPPED_NAMESPACE)
    assert len(rights) == len(set(rights)) > 30
    assert not [right for right in rights if "*" in right]


def test_the_role_for_topologies_is_offered() -> None:
    assert ("vkprovider-topology-reader", TOPOLOGY) in offers(Path(RBAC).read_text())


def test_the_role_for_parameters_is_offered_and_not_bound() -> None:
    manifest = Path(RBAC).read_text()
    offered = [right for role, right in offers(manifest) if role == "vkprovider-parameter-reader"]
    assert offered == [Right("get", "", "configmaps"), Right("get", "", "secrets")]
    secrets = [right for right in rights_of(manifest, SHIPPED_NAMESPACE) if right.resource == "secrets"]
    assert secrets == [SECRET], "no right to read Secrets of other namespaces"


def test_what_a_reconciler_reads_by_name_it_may_get() -> None:
    """A read that follows a conflict is rare, so that a sandbox may never show that the right is missing."""
    kinds = {
        "workers": WORKERS.plural,
        "runtime_classes": RUNTIME_CLASSES.plural,
        "config_maps": CONFIG_MAPS.plural,
        "secrets": SECRETS.plural,
    }
    sources = (Path(controllers.__file__).parent).rglob("*.py")
    read = {found for path in sources for found in re.findall(r"\bapi\.(\w+)\.get\(", path.read_text("utf-8"))}
    assert "workers" in read
    granted = {right.resource for right in rights_of(RBAC.read_text("utf-8"), SHIPPED_NAMESPACE) if right.verb == "get"}
    assert {kinds[name] for name in read if name in kinds} <= granted
