"""Replicas of the program that serves muxes, in the test's own loop, on a real API server, with its own rights."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from tests.component.controllers.looking import eventually
from tests.support.apiserver import MEMBERS, SYSTEM, Admin, ApiServer, Refused
from tests.support.faultyapi import FaultyApi
from tests.support.inloop import InLoop
from vkprovider.mux.process import MuxProcess, mux_process, page_of, program_of
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.platform.http.page import Page
from vkprovider.platform.runtime.context import connect
from vkprovider.platform.shipped import find_manifests

LEAVING: Final = {"ready": False, "serving": True, "terminating": True}
"""The conditions of a backend that is terminating and still serves."""
PREFIX: Final = "svc-mux.nowake.ai"
ACCOUNT: Final = "vkprovider-mux"
STORE_ROLE: Final = "vkprovider-mux-store"
ENDPOINT_SLICES: Final = "/apis/discovery.k8s.io/v1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_runs = itertools.count(1)
Json = dict[str, Any]


@dataclasses.dataclass
class Running(InLoop):
    """A replica that runs in this loop."""

    replica: MuxProcess
    page: Page

    @property
    def writes(self) -> list[str]:
        """Its requests that write anything but Leases, as `VERB path`."""
        return [
            asked.line
            for asked in self.api.asked
            if asked.method != "GET" and "/leases" not in asked.path and "reviews" not in asked.path
        ]

    async def close(self) -> None:
        """Close its connections."""
        await self.page.stop()
        await self.replica.ctx.kube.close()


class MuxWorld:
    """Namespaces for muxes and channels, and replicas; all of it is gone after the test."""

    def __init__(self, server: ApiServer, admin: Admin, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.admin = admin
        self.run = next(_runs)
        self.edge = f"edge-{self.run}"
        self.team = f"mux-team-{self.run}"
        self._directory = directory
        self._stack = stack
        self._replicas: list[Running] = []
        self._names = itertools.count(1)

    # ------------------------------------------------------------------------------------------ replicas

    async def replica(self, *, wall_ahead_s: float = 0.0, doubts: bool = False, **env: str) -> Running:
        """Start a replica behind a proxy of its own, with the rights of its ServiceAccount.

        Args:
            wall_ahead_s: By how much its wall clock is ahead.
            doubts: Whether it waits until the time is certain, half a minute, before a number is given again.
            env: Settings; by default it looks at nothing again by itself.
        """
        api = await self._stack.enter_async_context(FaultyApi(self.server.url, self.server.client_tls()))
        name = f"mux-{self.run}-{next(self._names)}"
        kubeconfig = self.server.write_provider_kubeconfig(self._directory / name, api.url, ACCOUNT)
        given = {
            "LABLET_CONTROLLER_INSTANCE_ID": name,
            "KUBECONFIG": kubeconfig,
            "DAEMON_QUEUE_TIMEOUT": "3600",
            "RECONCILE_INTERVAL": "3600",
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "DEBUG_WEB_PORT": "0",
            "VKPROVIDER_HTTP_PORT": "0",
            **env,
        }
        settings = MuxProcessSettings.from_environment(given)
        page = page_of(settings)
        await page.start()
        ctx = await connect(settings.kube, settings.replica, page.wait_for, program=program_of(settings))
        wall = ctx.wall
        is_sure = ctx.is_sure if doubts else lambda: True
        ctx = dataclasses.replace(ctx, wall=lambda: wall() + wall_ahead_s, is_sure=is_sure)
        replica = mux_process(ctx, settings)
        page.serve(replica.process)
        stop = asyncio.Event()
        task = asyncio.create_task(replica.process.run(stop), name=name)
        running = Running(api, stop, task, replica, page)
        self._replicas.append(running)
        return running

    async def shipped(self) -> Running:
        """Start a replica that looks again as often as one that users run."""
        return await self.replica(DAEMON_QUEUE_TIMEOUT="10", RECONCILE_INTERVAL="30")

    # ------------------------------------------------------------------------------------------ Services

    def services(self, namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/services"

    async def mux(self, name: str = "mux", *, marked: bool = True, spec: Json | None = None, **asked: str) -> Json:
        """Create a mux, as GitOps would, with annotations by their names without prefix."""
        notes = {"port_range": "20000-20099", "allowed_namespaces": "*", **asked}
        annotations = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in notes.items() if text}
        if marked:
            annotations[f"{PREFIX}/multiplexer"] = "true"
        body = {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "ports": [{"name": "placeholder", "port": 101}],
                **(spec or {}),
            },
        }
        return await self.admin.create(self.services(self.edge), body)

    async def channel(
        self,
        name: str,
        external: str = "",
        *,
        mux: str = "",
        namespace: str = "",
        ports: Mapping[str, int] | None = None,
        protocol: str = "TCP",
        backends: tuple[str, ...] = ("10.1.0.10",),
        annotations: Mapping[str, str] | None = None,
    ) -> Json:
        """Create a channel with a slice of backends; by default with port `http` 80."""
        namespace = namespace or self.team
        notes = dict(annotations or {}) | ({f"{PREFIX}/external-ports": external} if external else {})
        asked = ports or {"http": 80}
        listed = [{"name": key, "port": port, "protocol": protocol} for key, port in asked.items()]
        spec = {
            "type": "LoadBalancer",
            "loadBalancerClass": mux or f"{PREFIX}/mux.{self.edge}",
            "allocateLoadBalancerNodePorts": False,
            "selector": {"app": name},
            "ports": listed,
        }
        made = await self.admin.create(
            self.services(namespace), {"metadata": {"name": name, "annotations": notes}, "spec": spec}
        )
        if backends:
            target = [{"name": key, "port": 8000 + port, "protocol": protocol} for key, port in asked.items()]
            await self.slice(name, backends, namespace=namespace, ports=target)
        return made

    async def slice(
        self,
        service: str,
        backends: tuple[str, ...],
        *,
        namespace: str = "",
        ports: list[Json] | None = None,
        name: str = "",
        not_ready: tuple[str, ...] = (),
        leaving: tuple[str, ...] = (),
        target: Json | None = None,
    ) -> str:
        """Create an EndpointSlice of a Service, as Kubernetes does; return its path."""
        namespace = namespace or self.team
        name = name or f"{service}-{next(self._names)}"
        conditions: list[tuple[tuple[str, ...], Json]] = [
            (backends, {"ready": True}),
            (not_ready, {"ready": False}),
            (leaving, LEAVING),
        ]
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": [address], "conditions": has, **({"targetRef": target} if target else {})}
                for addresses, has in conditions
                for address in addresses
            ],
            "ports": ports or [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
        path = f"{ENDPOINT_SLICES}/namespaces/{namespace}/endpointslices"
        await self.admin.create(path, body)
        return f"{path}/{name}"

    def path(self, name: str, namespace: str = "") -> str:
        """Return the path of a Service; a mux's namespace by default for the name `mux`."""
        return f"{self.services(namespace or (self.edge if name.startswith('mux') else self.team))}/{name}"

    async def annotate(self, path: str, **notes: str | None) -> None:
        """Change annotations, by their names without prefix."""
        changed = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in notes.items()}
        await self.admin.patch(path, {"metadata": {"annotations": changed}})

    # ------------------------------------------------------------------------------------------ what is there

    async def ports(self, name: str = "mux") -> dict[tuple[int, str], str]:
        """Return the outside ports of a mux with their names."""
        found = await self.admin.get(self.path(name))
        assert found is not None
        return {(each["port"], each["protocol"]): each["name"] for each in found["spec"]["ports"]}

    async def until_ports(self, *expected: int, name: str = "mux") -> Json:
        """Wait until a mux has exactly these outside ports."""
        return await self.admin.until(
            self.path(name), lambda found: [each["port"] for each in found["spec"]["ports"]] == sorted(expected)
        )

    async def told(self, name: str, *, namespace: str = "") -> str | None:
        """Return the annotation `ports` of a channel."""
        found = await self.admin.get(self.path(name, namespace))
        shown: str | None = (found or {"metadata": {}})["metadata"].get("annotations", {}).get(f"{PREFIX}/ports")
        return shown

    async def until_told(self, name: str, text: str | None, *, namespace: str = "") -> Json:
        """Wait until a channel shows these ports, or none."""

        def good(found: Json) -> bool:
            shown: str | None = found["metadata"].get("annotations", {}).get(f"{PREFIX}/ports")
            return shown == text

        return await self.admin.until(self.path(name, namespace), good)

    async def until_event(self, reason: str, about: str) -> Json:
        """Wait for an Event about a Service of this world, and return it."""
        selector = f"reason={reason},involvedObject.name={about}"

        async def look() -> list[Json]:
            return [
                each
                for namespace in (self.edge, self.team)
                for each in await self.admin.items(f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}")
            ]

        return (await eventually(look, f"Event {reason} about {about}"))[0]

    async def forwards(self, name: str = "mux") -> dict[tuple[int, str], set[str]]:
        """Return where each outside port leads, as kube-proxy reads it: `address:port` of ready endpoints."""
        ports = await self.ports(name)
        slices = await self.own_slices(name)
        return {
            key: {
                f"{address}:{port['port']}"
                for each in slices
                for port in each["ports"]
                if port["name"] == port_name and port["protocol"] == key[1]
                for endpoint in each["endpoints"]
                if endpoint["conditions"]["ready"]
                for address in endpoint["addresses"]
            }
            for key, port_name in ports.items()
        }

    async def until_forwards(self, expected: Mapping[int, set[str]], name: str = "mux") -> None:
        """Wait until exactly these outside ports lead to exactly these backends."""

        async def look() -> bool:
            found = await self.forwards(name)
            return {port: to for (port, _), to in found.items() if to} == dict(expected)

        try:
            await eventually(look, f"{expected}")
        except AssertionError:
            raise AssertionError(f"expected {expected}, found {await self.forwards(name)}") from None

    async def own_slices(self, name: str = "mux", namespace: str = "") -> list[Json]:
        """Return the EndpointSlices of a Service."""
        path = f"{ENDPOINT_SLICES}/namespaces/{namespace or self.edge}/endpointslices"
        return await self.admin.items(f"{path}?labelSelector=kubernetes.io/service-name={name}")

    async def store(self, name: str = "mux-port-allocations") -> Json | None:
        """Return the ConfigMap of a mux."""
        return await self.admin.get(f"/api/v1/namespaces/{self.edge}/configmaps/{name}")

    async def rows(self, name: str = "mux-port-allocations") -> dict[str, int]:
        """Return the stored ports by `namespace/service/port`."""
        found = await self.store(name)
        document = json.loads(found["data"]["allocations.json"]) if found else {}
        return {
            f"{row['namespace']}/{row['service']}/{row['portName']}": row["port"]
            for row in document.get("portClaims", [])
        }

    async def address(self, ip: str, name: str = "mux") -> None:
        """Give a mux the address of its load balancer, as a cloud does."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": "VIP"}]}}}
        await self.admin.patch(f"{self.path(name)}/status", status)

    async def delete_namespace(self) -> None:
        """Delete the namespace of muxes and its content, backends first, as the controller of namespaces may do it."""
        core = f"/api/v1/namespaces/{self.edge}"
        await self.admin.delete(core)
        for path in (
            f"{ENDPOINT_SLICES}/namespaces/{self.edge}/endpointslices",
            f"{core}/configmaps",
            f"{core}/services",
        ):
            await self.admin.delete(path)

    async def bind_store(self, namespace: str) -> None:
        """Let the program keep the ports of muxes in a namespace, as an admin does, and wait until it may."""
        body = {
            "metadata": {"name": STORE_ROLE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": STORE_ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}],
        }
        await self.admin.create(f"{RBAC}/namespaces/{namespace}/rolebindings", body)
        await eventually(lambda: self.may_read_config_maps(namespace), "the right")

    async def unbind_store(self, namespace: str) -> None:
        """Take that away again, and wait until it counts."""
        await self.admin.delete(f"{RBAC}/namespaces/{namespace}/rolebindings/{STORE_ROLE}")

        async def gone() -> bool:
            return not await self.may_read_config_maps(namespace)

        await eventually(gone, "no right")

    async def may_read_config_maps(self, namespace: str) -> bool:
        """Return whether the program has the right already: a binding takes the API server a moment."""
        return await self.admin.may(f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", "get", "configmaps", namespace)

    async def close(self) -> None:
        """End what runs, and delete what was made."""
        for running in self._replicas:
            if not running.task.done():
                await running.crash()
        for namespace in (self.edge, self.team):
            await self._empty(namespace)
        await self.admin.delete(MEMBERS)
        await self.admin.delete(f"{ENDPOINT_SLICES}/namespaces/{SYSTEM}/endpointslices")

    async def _empty(self, namespace: str) -> None:
        for service in await self.admin.items(self.services(namespace)):
            path = f"{self.services(namespace)}/{service['metadata']['name']}"
            with contextlib.suppress(Refused):
                await self.admin.patch(path, {"metadata": {"finalizers": None}})
            await self.admin.delete(path)
        await self.admin.delete(f"{ENDPOINT_SLICES}/namespaces/{namespace}/endpointslices")
        await self.admin.delete(f"/api/v1/namespaces/{namespace}/configmaps")
        await self.admin.delete(f"/api/v1/namespaces/{namespace}/endpoints")


@contextlib.asynccontextmanager
async def open_world(server: ApiServer, directory: Path) -> AsyncIterator[MuxWorld]:
    """Make a world for one test."""
    async with Admin(server) as admin, AsyncExitStack() as stack:
        world = MuxWorld(server, admin, directory, stack)
        for namespace in (world.edge, world.team):
            await admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await world.bind_store(world.edge)
        try:
            yield world
        finally:
            await world.close()


def install(server: ApiServer) -> None:
    """Apply the manifests of the program; without controllers its Deployment has no Pods."""
    server.kubectl("apply", "--server-side", "-k", str(find_manifests() / "components" / "mux"))
