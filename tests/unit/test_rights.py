"""The shipped rights: each is named once, what an admin binds is offered, and what a reconciler reads it may get."""

import re
from pathlib import Path

from tools.rights import RBAC, offers
from vkprovider.doctor.rights import SHIPPED_NAMESPACE, CheckedRight, rights_of
from vkprovider.labs import controllers
from vkprovider.platform.kube.api import CONFIG_MAPS, RUNTIME_CLASSES, SECRETS, WORKERS

SECRET = CheckedRight("get", "", "secrets", "vkprovider-system-logins")
TOPOLOGY = CheckedRight("get", "", "configmaps")


def test_shipped_rights_name_each_right_once() -> None:
    rights = rights_of(Path(RBAC).read_text(), SHIPPED_NAMESPACE)
    assert len(rights) == len(set(rights)) > 30
    assert not [right for right in rights if "*" in right]


def test_the_role_for_topologies_is_offered() -> None:
    assert ("vkprovider-topology-reader", TOPOLOGY) in offers(Path(RBAC).read_text())


def test_the_role_for_parameters_is_offered_and_not_bound() -> None:
    manifest = Path(RBAC).read_text()
    offered = [right for role, right in offers(manifest) if role == "vkprovider-parameter-reader"]
    assert offered == [CheckedRight("get", "", "configmaps"), CheckedRight("get", "", "secrets")]
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
