"""Whole replicas in the test's own loop, on a real API server, with null workers or simulators in the same loop.

A test acts as users and admins do, and looks at what everyone can see: objects in the API server, the access log of a
simulator, the requests that passed the proxy. Without a scheduler it sets `spec.nodeName` itself.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from tests.component.controllers.looking import condition, eventually, is_ready, rows_of
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import SHORT, Groups, Replica, Running
from tests.support import apiserver as real
from tests.support import topologies
from tests.support.apiserver import CONFIG_MAPS, GROUP, NODE_LEASES, NODES, RUNTIME_CLASSES, SECRETS, Admin
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.faultyapi import FaultyApi
from vkprovider.labs.lds.config import takes_part
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.provider import provider
from vkprovider.platform.kube.clock import monotonic
from vkprovider.platform.runtime.context import connect
from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.simulation import Settings as CmlSettings

PASSWORD: Final = "labs-password"
_runs = itertools.count(1)


class World:
    """One installation: a namespace for Pods, workers, definitions, replicas. All of it is gone after the test.

    Attributes:
        ahead_s: By how much the wall clocks of all replicas are ahead.
        slept_s: For how long the machine of all replicas was suspended: their clocks went on, their timers did not.
    """

    def __init__(self, server: real.ApiServer, admin: Admin, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.admin = admin
        self.run = next(_runs)
        self.namespace = f"team-{self.run}"
        self.ahead_s = 0.0
        self.slept_s = 0.0
        self._directory = directory
        self.stack = stack
        self._names = itertools.count(1)
        self._addresses = itertools.count(7)
        self._replicas: list[Running] = []

    def name(self, stem: str) -> str:
        """Return a name that no other test has."""
        return f"{stem}-{self.run}-{next(self._names)}"

    # -------------------------------------------------------------------------------------- replicas

    async def replica(self, intervals: Groups = SHORT, *, name: str = "", process: str = "", **env: str) -> Running:
        """Start a replica behind a proxy of its own, with the provider's ServiceAccount.

        Args:
            intervals: Settings that are shorter than they are shipped; `env` does not change them.
            name: Its identity; unique by default.
            process: Host, process id and a random word; by default it runs on a host of its own.
            env: Settings, as environment variables.
        """
        api = await self.stack.enter_async_context(FaultyApi(self.server.url, self.server.client_tls()))
        name = name or self.name("replica")
        kubeconfig = self.server.write_provider_kubeconfig(self._directory / f"{name}-{len(self._replicas)}", api.url)
        given = Settings.from_environment({"LABLET_CONTROLLER_INSTANCE_ID": name, "KUBECONFIG": kubeconfig, **env})
        groups = {group: getattr(given, group).model_copy(update=fields) for group, fields in intervals.items()}
        settings = given.model_copy(update=groups)
        ctx = dataclasses.replace(
            await connect(settings.kube, settings.replica),
            now=lambda: monotonic() + self.slept_s,
            wall=lambda: time.time() + self.ahead_s,
            is_sure=lambda: True,  # two answers of the API server that agree are half a minute apart
            process=process or f"host-{self.run}-{len(self._replicas)}-1-abcd",
        )
        deployments = Deployments(settings.lds, user_agent=name) if takes_part(settings.lds) else None
        grader = HttpGrader(settings.grader, user_agent=name) if settings.grader.url else None
        replica = Replica(provider(ctx, settings, deployments=deployments, grader=grader))
        stop = asyncio.Event()
        task = asyncio.create_task(replica.process.run(stop), name=name)
        running = Running(api, stop, task, replica, deployments, grader)
        self._replicas.append(running)
        return running

    async def close(self) -> None:
        """End what runs."""
        for running in self._replicas:
            if not running.task.done():
                await running.crash()

    # -------------------------------------------------------------------------------------- workers

    async def simulator(self, *, patty: PattySettings | None = None, **settings: Any) -> CmlSimulator:
        """Start a CML simulator whose devices boot at once; see `Settings` of the simulator for the arguments."""
        settings = {"boot_seconds": (0.0, 0.0), **settings}
        simulator = CmlSimulator(CmlSettings(password=PASSWORD, **settings), patty=patty)
        return await self.stack.enter_async_context(simulator)

    async def worker(self, url: str = "", *, ready: bool = True, **spec: Any) -> str:
        """Create a CMLWorker with its Secret and, if wanted, wait for its Node; without a URL it is a null worker."""
        name = self.name("w")
        credentials = {"username": "admin", "password": PASSWORD}
        labels, annotations = {"vkprovider.io/used-for": "worker"}, {"vkprovider.io/host": url}
        meta = {"name": name, "namespace": real.LOGINS, "labels": labels, "annotations": annotations}
        await self.admin.create(SECRETS, {"metadata": meta, "stringData": credentials})
        defaults = {
            "url": url or f"null://{name}",
            "address": f"198.51.100.{next(self._addresses)}",
            "credentialsSecretName": name,
            "capacity": {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400},
            "portRange": {"start": 2000, "end": 2999},
        }
        await self.admin.create(
            f"{GROUP}/cmlworkers",
            {
                "apiVersion": "vkprovider.io/v1alpha1",
                "kind": "CMLWorker",
                "metadata": {"name": name},
                "spec": {**defaults, **spec},
            },
        )
        if ready:
            await self.node(name, is_ready)
        return name

    async def node(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until the Node of a worker satisfies a condition."""
        return await self.admin.until(f"{NODES}/vnode.{worker}", good)

    async def cmlworker(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until a CMLWorker satisfies a condition."""
        return await self.admin.until(f"{GROUP}/cmlworkers/{worker}", good)

    async def lease(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until the Lease of a worker's Node satisfies a condition, and return its spec."""
        found = await self.admin.until(f"{NODE_LEASES}/vnode.{worker}", lambda lease: good(lease["spec"]))
        spec: dict[str, Any] = found["spec"]
        return spec

    # -------------------------------------------------------------------------------------- definitions

    async def define(self, inline: str | None = None, *, ready: bool = True, name: str = "", **spec: Any) -> str:
        """Create a LabletDefinition and, if wanted, wait for its RuntimeClass; without a topology: one host `h0`."""
        name = name or self.name("lab")
        await self.admin.create(f"{GROUP}/labletdefinitions", topologies.definition(name, inline, **spec))
        if ready:
            await self.admin.until(f"{RUNTIME_CLASSES}/{name}", bool)
            await self.definition(name, lambda found: condition(found, "Ready")["status"] == "True")
        return name

    async def definition(self, name: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until a LabletDefinition satisfies a condition, of its latest generation."""

        def seen(found: dict[str, Any]) -> object:
            is_new = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            return is_new and good(found)

        return await self.admin.until(f"{GROUP}/labletdefinitions/{name}", seen)

    async def change_definition(self, name: str, **spec: Any) -> None:
        """Merge fields into the spec of a LabletDefinition."""
        await self.admin.patch(f"{GROUP}/labletdefinitions/{name}", {"spec": spec})

    # -------------------------------------------------------------------------------------- lablets

    async def pod(
        self,
        definition: str,
        worker: str,
        *,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **more: Any,
    ) -> Lablet:
        """Create a Pod on the Node of a worker; further arguments as in `topologies.pod`."""
        name = self.name("p")
        body = topologies.pod(name, definition, **more)
        body["spec"]["nodeName"] = f"vnode.{worker}"
        body["metadata"]["annotations"] = annotations or {}
        body["metadata"]["labels"].update(labels or {})
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        if not body["spec"].get("runtimeClassName"):  # it may not ask for the Node itself: bound as the scheduler binds
            del body["spec"]["nodeName"]
            made = await self.admin.create(pods, body)
            target = {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{worker}"}
            await self.admin.create(f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": target})
        else:
            made = await self.admin.create(pods, body)
        return Lablet(self.admin, self.namespace, worker, name, made["metadata"]["uid"])

    async def claims(self, worker: str) -> dict[str, dict[str, Any]]:
        """Return the rows of a worker's claims ConfigMap, by Pod UID."""
        found = await self.admin.get(f"{CONFIG_MAPS}/{worker}-port-allocations")
        return rows_of(found)

    async def ports(self, worker: str) -> dict[str, dict[str, int]]:
        """Return the outside ports of a worker's lablets, by the name of the Pod and of the slot."""
        found = await self.admin.get(f"{CONFIG_MAPS}/{worker}-port-allocations")
        document = json.loads(found["data"]["allocations.json"]) if found is not None else {}
        ports: dict[str, dict[str, int]] = {}
        for row in document.get("portClaims", []):
            ports.setdefault(row["service"], {})[row["portName"]] = row["port"]
        return ports

    async def events(self, reason: str, about: str = "") -> list[dict[str, Any]]:
        """List Events with a reason, in all namespaces; those of a Node or custom resource stand in `default`."""
        selector = f"reason={reason}" + (f",involvedObject.name={about}" if about else "")
        return await self.admin.items(f"/api/v1/events?fieldSelector={selector}")

    async def until_event(self, reason: str, about: str = "") -> dict[str, Any]:
        """Wait for an Event with a reason and return it."""
        return (await eventually(lambda: self.events(reason, about), f"Event {reason} about {about or 'anything'}"))[0]


@contextlib.asynccontextmanager
async def open_world(server: real.ApiServer, directory: Path) -> AsyncIterator[World]:
    """Make a world for one test."""
    async with Admin(server) as admin, AsyncExitStack() as stack:
        world = World(server, admin, directory, stack)
        await admin.create("/api/v1/namespaces", {"metadata": {"name": world.namespace}})
        account = {"metadata": {"name": "default"}}
        await admin.create(f"/api/v1/namespaces/{world.namespace}/serviceaccounts", account)
        try:
            yield world
        finally:
            await world.close()
            await admin.wipe(world.namespace)
