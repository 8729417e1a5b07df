"""The serving certificate: requested, signed by the test as the cluster's signer, served, renewed; and its stand-in."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready
from tests.component.controllers.running import Running
from tests.component.kubelet.credentials import base_of
from tests.support.apiserver import ApiServer, Refused
from vkprovider.labs.kubelet.certificate import Certificates
from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.http.tls import self_signed

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
OURS = f"{REQUESTS}?labelSelector=vkprovider.io/component%3Dserving-certificate"


@pytest.fixture(autouse=True)
async def requests(world: World) -> AsyncIterator[None]:
    """No request of another test is there."""
    await world.admin.delete(OURS)
    yield
    await world.admin.delete(OURS)


class Signer:
    """Approves and signs as an admin and the cluster's signer do."""

    def __init__(self, world: World, server: ApiServer) -> None:
        self._world = world
        pki = server.pki
        self._authority = x509.load_pem_x509_certificate((pki / "server-ca.crt").read_bytes())
        key = serialization.load_pem_private_key((pki / "server-ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    async def pending(self) -> dict[str, Any]:
        """Wait for a request that nobody has decided on."""

        async def look() -> dict[str, Any] | None:
            found = await self._world.admin.items(OURS)
            return next((item for item in found if not item["status"].get("conditions")), None)

        found = await eventually(look, "a request")
        assert found is not None
        return found

    async def decide(self, request: dict[str, Any], *, approved: bool, lasts_s: float = 3600.0) -> None:
        """Approve and sign a request, or deny it."""
        path = f"{REQUESTS}/{request['metadata']['name']}"
        kind = "Approved" if approved else "Denied"
        condition = {"type": kind, "status": "True", "reason": "Test", "message": "as the test says"}
        decided = {**request, "status": {"conditions": [condition]}}
        made = await self._world.admin.replace(f"{path}/approval", decided)
        if approved:
            made["status"]["certificate"] = base64.b64encode(self._sign(made, lasts_s)).decode()
            await self._world.admin.replace(f"{path}/status", made)

    def _sign(self, request: dict[str, Any], lasts_s: float) -> bytes:
        wanted = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(wanted.subject)
            .issuer_name(self._authority.subject)
            .public_key(wanted.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(seconds=1))
            .not_valid_after(now + timedelta(seconds=lasts_s))
            .add_extension(wanted.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)


async def base_at_once(running: Running) -> str:
    """Return the URL of a kubelet API that a replica serves before it has a Node.

    The longer a request has waited for its answer, the later the answer is looked at: a certificate of seconds that was
    signed after the wait for a Node may be over by then.
    """
    endpoint = await running.replica.kubelet.open("early")
    assert endpoint is not None
    return f"https://{endpoint.address}:{endpoint.port}"


async def served(base: str) -> x509.Certificate:
    """Return the certificate that a port serves, by its URL."""
    host, _, port = base.removeprefix("https://").rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(found)


async def until_served(base: str, issuer: str, other_than: int = 0) -> x509.Certificate:
    async def look() -> x509.Certificate | None:
        found = await served(base)
        names = {str(a.value) for a in found.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)}
        return found if issuer in names and found.serial_number != other_than else None

    found = await eventually(look, f"a certificate of {issuer}")
    assert found is not None
    return found


async def test_a_certificate_is_requested_served_and_renewed(world: World, apiserver: ApiServer) -> None:
    running = await world.replica()
    base = await base_at_once(running)
    signer = Signer(world, apiserver)
    request = await signer.pending()
    assert request["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
    assert request["spec"]["usages"] == ["digital signature", "server auth"]
    assert request["spec"]["expirationSeconds"] == 30 * 86400
    wanted = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    assert wanted.subject.rfc4514_string() == f"CN=system:node:{running.name},O=system:nodes"
    names = wanted.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1"]

    own = await until_served(base, "vkprovider self-signed")
    await signer.decide(request, approved=True, lasts_s=15)
    first = await until_served(base, "vkprovider-sandbox-server-ca")
    assert first.serial_number != own.serial_number
    trusting = ssl.create_default_context(cafile=str(apiserver.pki / "server-ca.crt"))
    _, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]), ssl=trusting)
    writer.close()

    await signer.decide(await signer.pending(), approved=True)
    renewed = await until_served(base, "vkprovider-sandbox-server-ca", other_than=first.serial_number)
    assert renewed.not_valid_after_utc > first.not_valid_after_utc
    node = await world.node(await world.worker(), is_ready)
    assert (await served(base_of(node))).serial_number == renewed.serial_number


async def test_an_expired_certificate_is_replaced_by_one_of_the_replicas_own(
    world: World, apiserver: ApiServer
) -> None:
    base = await base_at_once(await world.replica())
    signer = Signer(world, apiserver)
    await signer.decide(await signer.pending(), approved=True, lasts_s=10)
    await until_served(base, "vkprovider-sandbox-server-ca")
    await signer.decide(await signer.pending(), approved=False)
    await until_served(base, "vkprovider self-signed")


async def test_a_request_that_nobody_approves_is_looked_at_less_and_less_often(
    world: World, apiserver: ApiServer
) -> None:
    running = await world.replica(VKPROVIDER_KUBELET_CERTIFICATE="self-signed")
    tls = ServingTls(self_signed(["127.0.0.1"]))
    certificates = Certificates(running.ctx, tls, "127.0.0.1", 3600, dice=lambda: 1.0)
    waits_s = [await certificates.turn() for _ in range(9)]
    assert waits_s == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    signer = Signer(world, apiserver)
    request = await signer.pending()
    await signer.decide(request, approved=True)
    assert await certificates.turn() == 0
    assert certificates.is_signed
    assert await certificates.turn() > 60, "it is renewed towards the end of its life"
    assert [item["metadata"]["name"] for item in await world.admin.items(OURS)] == [request["metadata"]["name"]]


async def test_whoever_wants_none_requests_none(world: World) -> None:
    await world.replica(VKPROVIDER_KUBELET_CERTIFICATE="self-signed")
    node = await world.node(await world.worker(), is_ready)
    await until_served(base_of(node), "vkprovider self-signed")
    assert await world.admin.items(OURS) == []


async def test_the_provider_may_request_no_other_certificate(world: World) -> None:
    """A stolen token gets no certificate that proves an identity."""
    running = await world.replica()
    await world.worker()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, "system:node:real"),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["client auth"]}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    body = msgspec.json.encode({**kind, "metadata": {"name": "stolen"}, "spec": spec})
    with pytest.raises(Forbidden, match="kubelet-serving only"):
        await running.ctx.kube.create(REQUESTS, body)
    with pytest.raises(Refused, match="not found"):
        await world.admin.request("GET", f"{REQUESTS}/stolen")
