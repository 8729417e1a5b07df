"""An instructor: a ServiceAccount that has nothing but what `kubectl lablet grant` gives, and its kubeconfig."""

from pathlib import Path
from typing import Any

import yaml

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Instructor:
    """A ServiceAccount that an admin makes an instructor, and its kubeconfig.

    Attributes:
        namespace: Of the class; the ServiceAccount is in the world's.
    """

    def __init__(self, world: World, desk: Desk, folder: Path, *, name: str = "teacher", namespace: str = "") -> None:
        self.world, self.desk, self.name = world, desk, name
        self.namespace = namespace or world.namespace
        self.user = f"system:serviceaccount:{world.namespace}:{name}"
        self.kubeconfig = folder / f"kubeconfig-{name}"

    async def begin(self) -> None:
        """Make the ServiceAccount and its kubeconfig, without rights."""
        path = f"/api/v1/namespaces/{self.world.namespace}/serviceaccounts"
        await self.world.admin.create(path, {"metadata": {"name": self.name}})
        token = await self.desk.kubectl("create", "token", self.name, f"--namespace={self.world.namespace}")
        config: dict[str, Any] = yaml.safe_load(self.desk.kubeconfig.read_text())
        config["users"] = [{**user, "user": {"token": token.out.strip()}} for user in config["users"]]
        config["contexts"] = [
            {**each, "context": {**each["context"], "namespace": self.namespace}} for each in config["contexts"]
        ]
        self.kubeconfig.write_text(yaml.safe_dump(config))

    async def grant(self, *words: str) -> str:
        return await self.desk.succeeds("grant", self.user, "-n", self.namespace, *words)

    async def kubectl(self, *words: str) -> str:
        """Run kubectl as the instructor; return what it printed, refusals too."""
        result = await self.desk.kubectl(*words, KUBECONFIG=str(self.kubeconfig))
        return result.out + result.err

    async def may(self, verb: str, resource: str, namespace: str, group: str = "") -> bool:
        """Ask the API server what the user may do."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{self.world.namespace}", "system:authenticated")
        return await self.world.admin.may(self.user, verb, resource, namespace, group=group, groups=groups)

    async def end(self) -> None:
        """Delete the ServiceAccount and its bindings."""
        for path in (f"{RBAC}/namespaces/{self.namespace}/rolebindings", f"{RBAC}/clusterrolebindings"):
            for binding in await self.world.admin.items(path):
                name = binding["metadata"]["name"]
                if name.startswith("vkprovider-instructor") or name in {"lablets", "vkprovider-topologies"}:
                    await self.world.admin.delete(f"{path}/{name}")
        await self.world.admin.delete(f"/api/v1/namespaces/{self.world.namespace}/serviceaccounts/{self.name}")
