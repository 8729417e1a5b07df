"""Who lacks a right learns the command by which an administrator grants it, and not whose lab it is."""

import shlex
from pathlib import Path

import pytest
import yaml

import vkprovider
from vkprovider.labs.http.refusals import lablet_right, path_right
from vkprovider.platform.rights import Right, User, refusal

ROLES = {
    role["metadata"]["name"]: role["rules"]
    for role in yaml.safe_load_all(
        (Path(vkprovider.__file__).parents[1] / "manifests" / "base" / "roles.yaml").read_text()
    )
}


@pytest.mark.parametrize(
    "right",
    [
        lablet_right("login", "team-a", "pod-of-zoe"),
        lablet_right("download", "team-a", "pod-of-zoe"),
        lablet_right("archive", "team-a"),
        path_right("/info", "get"),
        path_right("/admin/stats", "get"),
        path_right("/admin/trigger-reconcile", "post"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("username", "subject"),
    [("zoe smith", "--user='zoe smith'"), ("system:serviceaccount:team-b:portal", "--serviceaccount=team-b:portal")],
)
def test_refusal_names_the_role_that_grants_the_right(right: Right, username: str, subject: str) -> None:
    said = refusal(User(username), right)
    assert "team-a" not in said
    assert "pod-of-zoe" not in said
    command = said.partition("kubectl ")[2]
    assert command.endswith(subject)
    [role] = [word.partition("=")[2] for word in shlex.split(command) if word.startswith("--clusterrole=")]
    asked = right.attributes()
    for rule in ROLES[role]:
        if "resourceAttributes" in asked:
            wanted = asked["resourceAttributes"]
            if f"lablets/{wanted['subresource']}" in rule.get("resources", []) and wanted["verb"] in rule["verbs"]:
                assert command.startswith("-n NAMESPACE create rolebinding ")
                return
        elif asked["nonResourceAttributes"]["path"] in rule.get("nonResourceURLs", []):
            assert asked["nonResourceAttributes"]["verb"] in rule["verbs"]
            assert command.startswith("create clusterrolebinding ")
            return
    raise AssertionError(f"{role} does not grant {right}")
