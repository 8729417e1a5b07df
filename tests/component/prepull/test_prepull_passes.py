"""Nodes that lack images get Pods that pull them, which go when the Node has the image (R002-067)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.apiserver import NODES, Admin, ApiServer
from vkprovider.cli.main import main
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.pure.nodeimages import ImageName
from vkprovider.prepull.config import PrepullConfig
from vkprovider.prepull.passes import Prepulling
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig

IMAGE = ImageName.parse("quay.io/team/workbench:1")
POOL = {"pool": "prepull"}
NAMESPACE = "vkprovider-prepull"
EXAMPLE = find_manifests() / "examples" / "prepull.yaml"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
Json = dict[str, Any]


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    """An API server with two Nodes of a pool, and the example of docs/prepull.md."""
    async with Admin(apiserver) as admin:
        if not await admin.get(f"/api/v1/namespaces/{NAMESPACE}"):
            labels = {"pod-security.kubernetes.io/enforce": "restricted"}
            await admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        apiserver.kubectl("apply", "-f", str(EXAMPLE))
        if not await admin.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"):
            account = {"metadata": {"name": "default"}}
            await admin.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        for name in ("pull-1", "pull-2"):
            await admin.create(NODES, {"metadata": {"name": name, "labels": POOL}, "spec": {}})
            await admin.patch(f"{NODES}/{name}", {"spec": {"taints": None}})
            await status(admin, name)
        yield admin
        await admin.delete(PODS, grace_s=0)
        for name in ("pull-1", "pull-2"):
            await admin.delete(f"{NODES}/{name}")


async def status(admin: Admin, node: str, *images: str) -> None:
    """Have a Node tell what it holds, as its kubelet does."""
    ready = {"type": "Ready", "status": "True"}
    told = {"conditions": [ready], "images": [{"names": [each]} for each in images]}
    await admin.patch(f"{NODES}/{node}/status", {"status": told})


@pytest.fixture
def limited(apiserver: ApiServer, admin: Admin, tmp_path: Path) -> str:  # noqa: ARG001 (it made the account)
    """A kubeconfig with the rights of the example."""
    token = apiserver.kubectl("create", "token", "prepull", f"--namespace={NAMESPACE}").strip()
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, name="prepull", cluster=read_cluster(apiserver.kubeconfig), user={"token": token})
    return str(path)


@pytest.fixture
async def prepulling(limited: str) -> AsyncIterator[Prepulling]:
    kube = await KubeClient.connect(KubeSettings(kubeconfig=limited))
    yield Prepulling(kube, NAMESPACE, PrepullConfig(node_selector=POOL, at_once=1))
    await kube.close()


async def pods(admin: Admin) -> dict[str, Json]:
    return {each["spec"]["nodeName"]: each for each in await admin.items(PODS)}


async def test_one_node_after_the_other_pulls_and_the_pods_go(admin: Admin, prepulling: Prepulling) -> None:
    found = await prepulling.look([IMAGE])
    assert found.missing == {IMAGE.tagged: ("pull-1", "pull-2")}
    await prepulling.act(found)
    await prepulling.act(found)  # by another one at the same time
    assert (await pods(admin)).keys() == {"pull-1"}
    await prepulling.act(await prepulling.look([IMAGE]))
    assert (await pods(admin)).keys() == {"pull-1"}, "one Node at once"

    waiting = {"reason": "ImagePullBackOff", "message": "denied"}
    told = [
        {"name": "pull", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": {"waiting": waiting}}
    ]
    name = (await pods(admin))["pull-1"]["metadata"]["name"]
    await admin.patch(f"{PODS}/{name}/status", {"status": {"phase": "Pending", "containerStatuses": told}})
    found = await prepulling.look([IMAGE])
    assert found.failing == {(IMAGE.tagged, "pull-1"): "ImagePullBackOff: denied"}
    await prepulling.act(found)
    assert (await pods(admin)).keys() == {"pull-1", "pull-2"}, "one that fails holds up nobody"

    for node in ("pull-1", "pull-2"):
        await status(admin, node, IMAGE.tagged)
    found = await prepulling.look([IMAGE])
    assert found.missing == {IMAGE.tagged: ()}
    await prepulling.act(found)
    left = await pods(admin)
    assert all(each["metadata"].get("deletionTimestamp") for each in left.values()), left


def invoke(kubeconfig: str, folder: Path, *words: str, **config: Any) -> tuple[int, str]:
    file = folder / "images.yaml"
    file.write_text(yaml.safe_dump(config))
    place = (f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}")
    done = CliRunner().invoke(main, ["prepull", str(file), *place, *words])
    return done.exit_code, done.output


async def test_the_command_says_where_what_is_missing(limited: str, admin: Admin, tmp_path: Path) -> None:
    def look(**config: Any) -> tuple[int, str]:
        return invoke(limited, tmp_path, "--look", **config)

    config = {"images": [IMAGE.tagged], "nodeSelector": POOL}
    missing = (1, f"{IMAGE.tagged}: missing on pull-1, pull-2\n")
    assert await asyncio.to_thread(look, **config) == missing
    assert await pods(admin) == {}, "nothing is changed"
    for node in ("pull-1", "pull-2"):
        await status(admin, node, IMAGE.tagged)
    assert await asyncio.to_thread(look, **config) == (0, f"{IMAGE.tagged}: on all Nodes\n")
    code, said = await asyncio.to_thread(look, imagse=[])
    assert code == 2
    assert "imagse: Extra inputs are not permitted" in said
