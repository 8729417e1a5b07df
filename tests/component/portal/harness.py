"""Replicas of the portal in the test's own loop, on a real API server, with the rights of the portal's ServiceAccount.

Nothing places Pods or removes Namespaces here; the test plays scheduler, provider and namespace controller: `Stage`.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import yaml

from tests.component.controllers.looking import eventually
from tests.support import topologies
from tests.support.apiserver import GROUP, MEMBERS, RUNTIME_CLASSES, SYSTEM, Admin, ApiServer, Refused
from tests.support.faultyapi import FaultyApi
from tests.support.inloop import InLoop
from vkprovider.platform.http.page import Page
from vkprovider.platform.runtime.context import connect
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.process import PORTAL, PortalProcess, page_of, portal_process
from vkprovider.portal.pure.portalnames import user_key
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.settings import PortalProcessSettings

ACCOUNT: Final = "vkprovider-portal"
MARK: Final = "vkprovider.io/portal"
_MARKED: Final = f"?labelSelector={MARK}"
_PROVIDER: Final = f"system:serviceaccount:{SYSTEM}:vkprovider"
NODE: Final = "vnode.portal-test"
SHORT: Final[Mapping[str, float]] = {"look_s": 1.0, "patience_s": 2.0}
"""Intervals that no setting names, shorter than they are shipped."""
SOON: Final = 6.0
"""See `PortalWorld.takes_over_s`."""
_runs = itertools.count(1)
Json = dict[str, Any]


@dataclasses.dataclass
class Running(InLoop):
    """A replica that runs in this loop."""

    replica: PortalProcess
    page: Page
    closed: bool = False

    @property
    def writes(self) -> list[str]:
        """Its requests that write, as `VERB path`, without those of its membership, its reviews and its Events."""
        return [
            asked.line
            for asked in self.api.asked
            if asked.method != "GET" and "-replica-" not in asked.line and "reviews" not in asked.path
            if not asked.path.endswith("/events")
            if not (asked.method == "POST" and "-replica-" in asked.body.decode(errors="replace"))
        ]

    async def close(self) -> None:
        """Close its connections, once."""
        if self.closed:
            return
        self.closed = True
        await self.page.stop()
        await self.replica.ctx.kube.close()


class Stage:
    """Plays what is missing beside an API server: scheduler, provider and namespace controller.

    Attributes:
        boots: Whether a Pod becomes Ready by itself.
        stops: Whether a Pod that is to end does.
        binds: Whether a Pod gets a Node.
        empties: Whether a Namespace that is to end is emptied, and ends.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.boots = True
        self.stops = True
        self.binds = True
        self.empties = True
        self.made: list[str] = []

    async def play(self) -> None:
        """Play for ever."""
        while True:
            with contextlib.suppress(Refused):
                await self.turn()
            await asyncio.sleep(0.03)

    async def turn(self) -> None:
        """Look once at everything."""
        for pod in await self._admin.items(f"/api/v1/pods{_MARKED}"):
            with contextlib.suppress(Refused):
                await self._pod(pod)
        for namespace in await self._admin.items(f"/api/v1/namespaces{_MARKED}"):
            if self.empties and namespace["metadata"].get("deletionTimestamp"):
                with contextlib.suppress(Refused):
                    await self.remove(namespace["metadata"]["name"])

    async def _pod(self, pod: Json) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta["uid"] not in self.made:
            self.made.append(meta["uid"])
        if meta.get("deletionTimestamp"):
            if self.stops:
                await self._admin.delete(path, grace_s=0)
        elif not pod["spec"].get("nodeName"):
            if not self.binds:
                return
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            await self._admin.create(f"{path}/binding", {"metadata": {"name": meta["name"]}, "target": target})
        elif self.boots and pod["status"].get("phase") == "Pending":
            await self.ready(path)

    async def ready(self, path: str, *, state: str = "True", phase: str = "Running") -> None:
        """Write the status of a Pod whose lab is ready."""
        await self._admin.patch(
            f"{path}/status",
            {
                "status": {
                    "phase": phase,
                    "conditions": [
                        {"type": "Ready", "status": state, "lastTransitionTime": "2026-11-26T12:00:00Z"},
                    ],
                }
            },
        )

    async def fails(self, path: str) -> None:
        """Write the status of a Pod whose lab has failed, once it has its Node; `boots` is off meanwhile."""
        await self._admin.until(path, lambda pod: pod["spec"].get("nodeName"))
        await self.ready(path, state="False", phase="Failed")

    async def report(self, path: str, notes: Json) -> None:
        """Write annotations of a Pod that only the provider may write."""
        body = {"metadata": {"annotations": notes}}
        await self._admin.request("PATCH", path, body, "application/merge-patch+json", user=_PROVIDER)

    async def remove(self, namespace: str) -> None:
        """Empty a Namespace whose deletion has begun, and let it go."""
        base = f"/api/v1/namespaces/{namespace}"
        for kind in ("pods", "secrets", "configmaps", "serviceaccounts", "events", "resourcequotas"):
            await self._admin.delete(f"{base}/{kind}", grace_s=0)
        await self._admin.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings")
        found = await self._admin.get(base)
        if found is not None:
            found["spec"]["finalizers"] = []
            await self._admin.replace(f"{base}/finalize", found)


class PortalWorld:
    """Definitions, users and replicas; all of it is gone after the test.

    Attributes:
        takes_over_s: How soon replicas take over from a dead one: as shipped, for a busy machine fences replicas that
            promise much less; `SOON` where a test waits for it.
        times: Intervals of replicas that no setting names.
    """

    def __init__(self, server: ApiServer, admin: Admin, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.admin = admin
        self.stage = Stage(admin)
        self.run = next(_runs)
        self.takes_over_s = 15.0
        self.times = SHORT
        self._directory = directory
        self._stack = stack
        self._replicas: list[Running] = []
        self._names = itertools.count(1)
        self._definitions: list[str] = []
        self._strangers: list[str] = []

    # ------------------------------------------------------------------------------------------ replicas

    async def replica(
        self,
        *,
        config: Json | None = None,
        wall_ahead_s: Callable[[], float] = lambda: 0.0,
        doubts: bool = False,
        times: Mapping[str, float] | None = None,
        **env: str,
    ) -> Running:
        """Start a replica behind a proxy of its own, with the rights of its ServiceAccount.

        Args:
            config: The file of `VKPROVIDER_PORTAL_CONFIG`.
            wall_ahead_s: Returns by how much its wall clock is ahead.
            doubts: Whether it waits until the time is certain, which takes half a minute, before something ends by it.
            times: Intervals that no setting names; by default those of the world.
            env: Settings.
        """
        api = await self._stack.enter_async_context(FaultyApi(self.server.url, self.server.client_tls()))
        name = f"portal-{self.run}-{next(self._names)}"
        kubeconfig = self.server.write_provider_kubeconfig(self._directory / name, api.url, ACCOUNT)
        given = {
            "LABLET_CONTROLLER_INSTANCE_ID": name,
            "KUBECONFIG": kubeconfig,
            "LEADER_LEASE_TTL": f"{self.takes_over_s:g}",
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "VKPROVIDER_HTTP_PORT": "0",
            **env,
        }
        if config is not None:
            path = self._directory / f"{name}.yaml"
            path.write_text(yaml.safe_dump(config))
            given["VKPROVIDER_PORTAL_CONFIG"] = str(path)
        settings = PortalProcessSettings.from_environment(given)
        page = page_of(settings)
        await page.start()
        ctx = await connect(settings.kube, settings.replica, page.wait_for, program=PORTAL)
        wall = ctx.wall
        ctx = dataclasses.replace(
            ctx,
            wall=lambda: wall() + wall_ahead_s(),
            is_sure=ctx.is_sure if doubts else lambda: True,
            process=f"host-{name}-1-abcd",
        )
        changed = settings.portal.model_copy(update=self.times if times is None else times)
        settings = settings.model_copy(update={"portal": changed})
        replica = portal_process(ctx, settings)
        page.serve(replica.process)
        stop = asyncio.Event()
        task = asyncio.create_task(replica.process.run(stop), name=name)
        running = Running(api, stop, task, replica, page)
        self._replicas.append(running)

        async def known() -> bool:
            return not replica.process.unready()

        await eventually(known, f"{name} is ready")
        return running

    # ------------------------------------------------------------------------------------------ the menu

    async def define(
        self,
        family: str = "",
        *,
        size: str = "small",
        version: str = "1.0.0",
        cpu: str = "1",
        devices: Sequence[str] = (),
        **spec: Any,
    ) -> str:
        """Create a LabletDefinition with its RuntimeClass, as the provider makes them; return its family."""
        family = family or f"net-{self.run}-{next(self._names)}"
        name = f"{family}-{size}"
        body = topologies.definition(name, version=version, **spec)
        body["metadata"]["labels"] = {"vkprovider.io/family": family, "vkprovider.io/size": size}
        await self.admin.create(f"{GROUP}/labletdefinitions", body)
        kept = {"version": version, "digest": f"digest-{version}", "resources": {"cpu": cpu, "memory": "1Gi"}}
        listed_devices = [{"label": each.upper(), "container": each, "nodeDefinition": "iosv"} for each in devices]
        status = {"version": version, "versions": [kept], "devices": listed_devices}
        await self.admin.patch(f"{GROUP}/labletdefinitions/{name}/status", {"status": status})
        await self.admin.create(
            RUNTIME_CLASSES,
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name, "labels": {"vkprovider.io/component": "runtimeclass"}},
                "handler": "vkprovider",
                "scheduling": {
                    "nodeSelector": {"vkprovider.io/component": "vnode"},
                    "tolerations": [{"key": "vkprovider.io/virtual-node", "operator": "Exists"}],
                },
            },
        )
        self._definitions.append(name)

        async def listed() -> bool:
            return all(
                f"{family}:{version}" in [image.reference for image in running.replica.choices.menu().images]
                for running in self._replicas
                if not running.task.done()
            )

        await eventually(listed, f"{family} is on the menu")
        return family

    # ------------------------------------------------------------------------------------------ what is there

    def caller(self, user: str) -> LabCaller:
        """Return a user who asks for a lab of the own."""
        return LabCaller(user, user, (), f"token-of-{user}")

    def namespace(self, user: str) -> str:
        """Return the path of the Namespace that is made for a user."""
        return f"/api/v1/namespaces/nublado-{user_key(user)}"

    def pod(self, user: str) -> str:
        """Return the path of the Pod that is made for a user."""
        return f"{self.namespace(user)}/pods/nb-{user_key(user)}"

    async def namespaces(self) -> list[str]:
        """Return the names of all Namespaces with the mark."""
        return [each["metadata"]["name"] for each in await self.admin.items(f"/api/v1/namespaces{_MARKED}")]

    async def pods(self) -> list[Json]:
        """Return all Pods with the mark."""
        return await self.admin.items(f"/api/v1/pods{_MARKED}")

    async def note(self, user: str, name: str) -> Any:
        """Return an annotation of the Namespace of a user, decoded; None if there is none."""
        found = await self.admin.get(self.namespace(user))
        text = (found or {}).get("metadata", {}).get("annotations", {}).get(f"vkprovider.io/{name}")
        return json.loads(text) if text is not None else None

    async def until_phase(self, user: str, phase: str, kind: str = "create") -> Json:
        """Wait until an operation of a user's lab has ended so; return how."""

        async def look() -> Json | None:
            found = await self.note(user, "operation")
            return found if found is not None and (found["phase"], found["kind"]) == (phase, kind) else None

        try:
            found = await eventually(look, f"{kind} of {user} is {phase}")
        except AssertionError:
            raise AssertionError(f"{user} is not {phase}: {await self.admin.get(self.namespace(user))}") from None
        assert found is not None
        return found

    async def until_gone(self, user: str) -> None:
        """Wait until there is no Namespace of a user."""
        await self.admin.until_gone(self.namespace(user))

    async def locks(self) -> list[str]:
        """Return the names of all Leases that lock a user."""
        return [
            each["metadata"]["name"]
            for each in await self.admin.items(MEMBERS)
            if each["metadata"]["name"].startswith("vkprovider-userlab-")
        ]

    async def until_unlocked(self) -> None:
        """Wait until no user is locked."""

        async def look() -> bool:
            return not await self.locks()

        await eventually(look, "no lock is left")

    async def stranger(self, name: str, labels: Json | None = None, annotations: Json | None = None) -> None:
        """Create a Namespace that is not the portal's."""
        await self.admin.create(
            "/api/v1/namespaces",
            {"metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}}},
        )
        self._strangers.append(name)

    async def close(self) -> None:
        """End what runs, and delete what was made."""
        for running in self._replicas:
            await running.crash()
        for namespace in [*await self.namespaces(), *self._strangers]:
            await self.admin.delete(f"/api/v1/namespaces/{namespace}")
            with contextlib.suppress(Refused):
                await self.stage.remove(namespace)
        for name in self._definitions:
            await self.admin.patch(f"{GROUP}/labletdefinitions/{name}", {"metadata": {"finalizers": None}})
            await self.admin.delete(f"{GROUP}/labletdefinitions/{name}")
            await self.admin.delete(f"{RUNTIME_CLASSES}/{name}")
        await self.admin.delete(MEMBERS)


@contextlib.asynccontextmanager
async def open_world(server: ApiServer, directory: Path) -> AsyncIterator[PortalWorld]:
    """Make a world for one test."""
    async with Admin(server) as admin, AsyncExitStack() as stack:
        world = PortalWorld(server, admin, directory, stack)
        playing = asyncio.create_task(world.stage.play())
        try:
            yield world
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            await world.close()


def install(server: ApiServer) -> None:
    """Apply the manifests of the portal; without controllers its Deployment has no Pods."""
    server.kubectl("apply", "--server-side", "-k", str(find_manifests() / "components" / "portal"))
