"""The manifests of the program that serves muxes and of the relay, as an API server takes them."""

from typing import Any

import pytest
import yaml
from pydantic import AliasChoices

from tests.component.mux.harness import MuxWorld
from tests.support.apiserver import Refused
from tools.generate import groups, variables
from vkprovider import __version__
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.platform.shipped import find_manifests

FOLDER = find_manifests() / "components"
MUX: list[dict[str, Any]] = [
    each
    for name in yaml.safe_load((FOLDER / "mux" / "kustomization.yaml").read_text())["resources"]
    for each in yaml.safe_load_all((FOLDER / "mux" / name).read_text())
]
RELAY = yaml.safe_load((FOLDER / "relay" / "daemonset.yaml").read_text())
Json = dict[str, Any]


def only(kind: str) -> Json:
    found: list[Json] = [each for each in MUX if each["kind"] == kind]
    [it] = found
    return it


def selected(labels: Json) -> bool:
    """Return whether labels are those of the Pods of the program."""
    own: Json = only("Deployment")["spec"]["template"]["metadata"]["labels"]
    return labels.items() <= own.items()


@pytest.mark.parametrize(("level", "passes"), [("restricted", (True, False)), ("privileged", (True, True))])
async def test_pods_pass_pod_security_of_their_namespaces(
    world: MuxWorld, level: str, passes: tuple[bool, bool]
) -> None:
    """The namespace of the provider enforces `restricted`; the relay, in the host's network, has one of its own.

    Both also pass the policies of the installation, which keep others than lablets away from virtual nodes.
    """
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
    await world.admin.patch(f"/api/v1/namespaces/{world.edge}", labels)
    accounts = f"/api/v1/namespaces/{world.edge}/serviceaccounts"
    for name, workload, may in zip(("mux", "relay"), (only("Deployment"), RELAY), passes, strict=True):
        spec = workload["spec"]["template"]["spec"]
        await world.admin.create(accounts, {"metadata": {"name": spec["serviceAccountName"]}})
        pod = {"metadata": {"name": name}, "spec": {**spec, "priorityClassName": None}}
        path = f"/api/v1/namespaces/{world.edge}/pods?dryRun=All"
        if may:
            await world.admin.create(path, pod)
        else:
            with pytest.raises(Refused, match="violates PodSecurity"):
                await world.admin.create(path, pod)


def test_a_drain_leaves_one_replica_and_the_policy_is_theirs() -> None:
    assert selected(only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"])
    assert only("Deployment")["spec"]["replicas"] > only("PodDisruptionBudget")["spec"]["maxUnavailable"]
    policy = only("NetworkPolicy")["spec"]
    assert selected(policy["podSelector"]["matchLabels"])
    [container] = only("Deployment")["spec"]["template"]["spec"]["containers"]
    [port] = container["ports"]
    assert [entry["port"] for rule in policy["ingress"] for entry in rule["ports"]] == [port["name"]]
    assert MuxProcessSettings().http.port == port["containerPort"]


def test_programs_have_the_priority_of_the_provider() -> None:
    [made] = yaml.safe_load_all((find_manifests() / "deployment" / "priorityclass.yaml").read_text())
    for workload in (only("Deployment"), RELAY):
        assert workload["spec"]["template"]["spec"]["priorityClassName"] == made["metadata"]["name"]


def test_image_and_settings_are_those_of_this_version() -> None:
    [image] = yaml.safe_load((FOLDER / "mux" / "kustomization.yaml").read_text())["images"]
    assert image == {"name": "vkprovider", "newTag": __version__}
    [container] = only("Deployment")["spec"]["template"]["spec"]["containers"]
    aliases = [field.validation_alias for group in groups() for field in variables(group).values()]
    known = {str(name) for alias in aliases for name in (alias.choices if isinstance(alias, AliasChoices) else [alias])}
    assert {entry["name"] for entry in container["env"]} <= known
