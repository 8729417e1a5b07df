"""Workbenches: everything that stands beside a lab for one.

The policies of their network follow workers and API servers that come and go: the replica that leads writes them again.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from vkprovider.platform.errors import Conflict, Fenced, InputError, Invalid, NotFound, OutsideError, Unavailable
from vkprovider.platform.kube.api import CONFIG_MAPS, ENDPOINT_SLICES, ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import PartialObject, Resource, kind
from vkprovider.platform.objects import EndpointSlice, Node
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.portal.pure.benchnet import ApiEndpoint, bench_policy_spec, worker_addresses
from vkprovider.portal.pure.benchpod import ACCESS, BenchUser, access_of, bench_pod_spec
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.identity import group, passwd, unprivileged
from vkprovider.portal.pure.portalnames import (
    ANNOTATION_PROVISIONED,
    LABEL_REQUEST,
    LABEL_WORKBENCH,
    bench_name,
    nss_name,
    provisioned_name,
    pull_name,
)
from vkprovider.portal.pure.record import BenchRequest, labels_for
from vkprovider.portal.pure.workbench import WorkbenchConfig
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.records import (
    Pods,
    config_map_body,
    metadata,
    service_account_body,
    workbench_binding_body,
)
from vkprovider.portal.settings import PortalSettings

_log: Final = structlog.get_logger(__name__)
COPIED: Final = "vkprovider-workbench"
"""The Secret of the portal's namespace whose keys are copied into workbenches."""
PULL: Final = "vkprovider-workbench-pull"
"""The Secret of the portal's namespace by which images of workbenches are pulled."""
_PULL_TYPE: Final = "kubernetes.io/dockerconfigjson"
_POLICIES: Final = kind("/apis/networking.k8s.io/v1", "networkpolicies", PartialObject)
_QUOTAS: Final = kind("/api/v1", "resourcequotas", PartialObject)
Json = dict[str, Any]


class _Bench(NamedTuple):
    """A workbench that is to be made.

    Attributes:
        config: Its kind.
        asked: What the request says of it.
        user: Whose it is.
    """

    config: WorkbenchConfig
    asked: BenchRequest
    user: BenchUser


class _Around(NamedTuple):
    """What policies of workbenches name.

    Attributes:
        api: The API server's own addresses.
        workers: The addresses of workers.
    """

    api: list[ApiEndpoint]
    workers: list[str]


class Workbenches:
    """Makes workbenches, ends them, and keeps their policies as they should be."""

    def __init__(
        self,
        ctx: Context,
        settings: PortalSettings,
        config: PortalConfig,
        pods: Pods,
        nodes: Callable[[], Iterable[Node]],
    ) -> None:
        """Make none yet.

        Args:
            ctx: The replica; its namespace is the mark.
            settings: The portal's.
            config: Describes the workbenches.
            pods: Writes the Pods.
            nodes: Returns the Nodes of workers; called when a policy is made.
        """
        self._ctx = ctx
        self._settings = settings
        self._config = config
        self._pods = pods
        self._nodes = nodes
        self._config_maps = Resource(ctx.kube, CONFIG_MAPS).metadata_only
        self._copies = Resource(ctx.kube, SECRETS).metadata_only
        self._secrets = Resource(ctx.kube, SECRETS, ctx.namespace)
        self._accounts = Resource(ctx.kube, SERVICE_ACCOUNTS).metadata_only
        self._bindings = Resource(ctx.kube, ROLE_BINDINGS).metadata_only
        self._policies = Resource(ctx.kube, _POLICIES).metadata_only
        self._quotas = Resource(ctx.kube, _QUOTAS).metadata_only
        self._slices: Resource[EndpointSlice] = Resource(ctx.kube, ENDPOINT_SLICES, "default")
        self._written: dict[str, str] = {}

    async def make(self, lab: UserLab, guard: Guard) -> None:
        """Make the workbench of a lab, its Pod last.

        Raises:
            Invalid: It is not described, or a Secret that it needs is not there.
            Unavailable: The API server's own addresses are unknown.
        """
        bench, namespace, key = self._bench(lab), lab.record.namespace, lab.key
        labels = labels_for(self._ctx.namespace, lab.user, class_=lab.record.class_)
        name, user = bench_name(key), bench.user
        files = {"passwd": passwd(key, user.uid, user.gid), "group": group(key, user.gid, user.groups)}
        nss = config_map_body(nss_name(key), labels, files)
        await _put(self._config_maps.within(namespace), nss, guard)
        for body in await self._secrets_of(lab, bench, labels):
            await _put(self._copies.within(namespace), body, guard)
        await _create(self._accounts.within(namespace), service_account_body(name, labels), guard)
        await _create(self._bindings.within(namespace), workbench_binding_body(name, labels, namespace), guard)
        await self._write_policy(lab, await self._policy(bench.config), guard)
        if bench.config.quota:
            meta = metadata(name, labels)
            body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": bench.config.quota}}
            await _write(self._quotas.within(namespace), body, guard)
        spec = bench_pod_spec(
            bench.config,
            bench.asked.size,
            user,
            provision=bench.config.init is not None and not await self._is_provisioned(lab, bench),
        )
        marks = {**labels, LABEL_WORKBENCH: "true", LABEL_REQUEST: _request_id(lab)}
        await self._pods.create_from(namespace, name, marks, spec, guard)

    async def note_provisioned(self, lab: UserLab, guard: Guard) -> None:
        """Note for ever that the user of a lab is provisioned, and then on the Pod that it is noted.

        Raises:
            Conflict: The Pod is another one.
            NotFound: It is gone.
        """
        if lab.bench is None or lab.record.request is None or lab.record.request.bench is None:
            return
        name, of = provisioned_name(lab.key), lab.record.request.bench.name
        notes = {ANNOTATION_PROVISIONED + f"-{of}": "true"}
        leases = self._ctx.api.member_leases
        try:
            await leases.create({"metadata": {"name": name, "annotations": notes}, "spec": {}}, guard=guard)
        except Conflict:
            lease = await leases.get(name)
            if lease is not None:
                meta = {"name": name, "resourceVersion": lease.metadata.resource_version}
                kept = {**lease.metadata.annotations, **notes}
                await leases.replace({"metadata": {**meta, "annotations": kept}, "spec": {}}, guard=guard)
        await self._pods.change(lab.bench, {ANNOTATION_PROVISIONED: "true"}, guard)

    async def keep(self, index: UserLabIndex, membership: Membership) -> None:
        """Keep the policies of all workbenches as they should be, for ever, while this replica leads."""
        while True:
            await asyncio.sleep(self._settings.look_s)
            try:
                if membership.leads():
                    await self._renew(index.labs(), membership.check_leads)
            except (OutsideError, InputError, Fenced) as error:
                _log.warning("the policies of workbenches may be old", error=str(error))

    async def _renew(self, labs: Iterable[UserLab], guard: Guard) -> None:
        """Write the policies that are not as they should be."""
        benches = [lab for lab in labs if lab.bench is not None and lab.bench.metadata.deletion_timestamp is None]
        here = {lab.record.namespace for lab in benches}
        self._written = {place: what for place, what in self._written.items() if place in here}
        around = await self._around() if benches else _Around([], [])
        for lab in benches:
            try:
                spec = self._spec(self._bench(lab).config, around)
            except Invalid:  # it is not described any more, and stays as it is until its end
                continue
            if self._written.get(lab.record.namespace) == _digest(spec):
                continue
            try:
                await self._write_policy(lab, spec, guard)
            except OutsideError as error:  # the others get theirs
                _log.warning("the policy of a workbench is not written", user=lab.key, error=str(error))

    def _bench(self, lab: UserLab) -> _Bench:
        """Return the workbench that a lab is to have.

        Raises:
            Invalid: Nobody describes it.
        """
        request = lab.record.request
        asked = request.bench if request is not None else None
        config = self._config.workbenches.get(asked.name) if asked is not None else None
        if request is None or asked is None or config is None:
            raise Invalid(f"no workbench {asked.name if asked is not None else ''!r} is in VKPROVIDER_PORTAL_CONFIG")
        who = unprivileged(request.posix)
        uid = who.uid if who.uid is not None else config.uid
        gid = who.gid if who.gid is not None else config.gid
        return _Bench(config, asked, BenchUser(lab.key, uid, gid, {each.name: each.id for each in who.groups}))

    async def _secrets_of(self, lab: UserLab, bench: _Bench, labels: Mapping[str, str]) -> list[Json]:
        """Return the Secrets of a workbench.

        Raises:
            Invalid: One that is to be copied, or a key of it, is not there.
        """
        config, found = bench.config, list[Json]()
        data = await self._read(COPIED, config.secrets) if config.secrets else {}
        if (secret := self._settings.cookie_secret) is not None:
            data[ACCESS] = access_of(secret, lab.record.namespace, _request_id(lab)).encode()
        found.append(_secret(bench_name(lab.key), labels, data, "Opaque"))
        if config.pull_secret:
            data = await self._read(PULL, [".dockerconfigjson"])
            found.append(_secret(pull_name(lab.key), labels, data, _PULL_TYPE))
        return found

    async def _read(self, name: str, keys: Iterable[str]) -> dict[str, bytes]:
        secret = await self._secrets.get(name)
        held = secret.data if secret is not None else {}
        if missing := [key for key in keys if key not in held]:
            raise Invalid(f"the Secret {name} in {self._ctx.namespace} has no {', '.join(missing)}")
        return {key: held[key] for key in keys}

    async def _is_provisioned(self, lab: UserLab, bench: _Bench) -> bool:
        lease = await self._ctx.api.member_leases.get(provisioned_name(lab.key))
        return lease is not None and f"{ANNOTATION_PROVISIONED}-{bench.asked.name}" in lease.metadata.annotations

    async def _policy(self, config: WorkbenchConfig) -> Json:
        return self._spec(config, await self._around())

    def _spec(self, config: WorkbenchConfig, around: _Around) -> Json:
        return bench_policy_spec(config, home=self._ctx.namespace, api=around.api, workers=around.workers)

    async def _around(self) -> _Around:
        """Return what stands around workbenches.

        Raises:
            Unavailable: The API server's own addresses are unknown.
        """
        workers = await self._ctx.api.workers.list()
        return _Around(await self._api(), worker_addresses(self._nodes(), workers))

    async def _api(self) -> list[ApiEndpoint]:
        """Return the API server's own addresses.

        Raises:
            Unavailable: They are unknown.
        """
        found = await self._slices.get("kubernetes")
        ports = [each.port for each in (found.ports or ()) if each.port is not None] if found is not None else []
        endpoints = (found.endpoints or ()) if found is not None else ()
        api = [ApiEndpoint(address, port) for each in endpoints for address in each.addresses for port in ports]
        if not api:
            raise Unavailable("the EndpointSlice kubernetes in default names no address of the API server")
        return api

    async def _write_policy(self, lab: UserLab, spec: Json, guard: Guard) -> None:
        name, policies = bench_name(lab.key), self._policies.within(lab.record.namespace)
        labels = labels_for(self._ctx.namespace, lab.user, class_=lab.record.class_)
        body = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata(name, labels)}
        await _write(policies, {**body, "spec": spec}, guard)
        self._written[lab.record.namespace] = _digest(spec)


def _request_id(lab: UserLab) -> str:
    return lab.record.request.id if lab.record.request is not None else ""


def _secret(name: str, labels: Mapping[str, str], data: Mapping[str, bytes], type_: str) -> Json:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name, labels), "type": type_}
    return {**body, "data": msgspec.to_builtins(dict(data))}


async def _put(of: Resource[PartialObject], body: Json, guard: Guard) -> None:
    """Create an object in the place of an earlier one: nobody reads it while its workbench is not there."""
    await of.delete(body["metadata"]["name"], guard=guard)
    await _create(of, body, guard)


async def _write(of: Resource[PartialObject], body: Json, guard: Guard) -> None:
    """Create an object, or give the one that is there this spec."""
    try:
        await of.create(body, guard=guard)
    except Conflict:
        with suppress(NotFound):  # with its namespace
            await of.patch(body["metadata"]["name"], {"spec": body["spec"]}, guard=guard)


async def _create(of: Resource[PartialObject], body: Json, guard: Guard) -> None:
    with suppress(Conflict):
        await of.create(body, guard=guard)


def _digest(spec: Json) -> str:
    return hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()
