"""Credentials for the kubelet API: client certificates of the cluster's or another authority, tokens, roles."""

import itertools
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.apiserver import Admin, ApiServer

HOUR: Final = timedelta(hours=1)
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_names = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    type: str


class Client:
    """A client of one Node's port."""

    def __init__(self, base: str, session: aiohttp.ClientSession) -> None:
        self.base = base
        self.session = session

    async def __call__(self, path: str, method: str = "GET", **headers: str) -> Answer:
        async with self.session.request(method, self.base + path, headers=headers) as answer:
            return Answer(answer.status, await answer.text(), answer.content_type)


class Credentials:
    """Makes credentials."""

    def __init__(self, server: ApiServer, admin: Admin, namespace: str, directory: Path) -> None:
        self._server = server
        self._admin = admin
        self._namespace = namespace
        self._directory = directory
        self._made: list[str] = []

    async def close(self) -> None:
        """Delete the roles."""
        for path in self._made:
            await self._admin.delete(path)

    def apiserver(self) -> ssl.SSLContext:
        """Return the TLS of the API server as a client of kubelets."""
        return self._with(
            self._server.pki / "apiserver-kubelet-client.crt", self._server.pki / "apiserver-kubelet-client.key"
        )

    def nobody(self) -> ssl.SSLContext:
        """Return TLS without a client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # what is served is another test's subject
        return context

    def certificate(
        self,
        user: str,
        *groups: str,
        foreign: bool = False,
        begins: timedelta = -HOUR,
        ends: timedelta = HOUR,
    ) -> ssl.SSLContext:
        """Return TLS with a client certificate of the cluster's authority, or of another one that has its name."""
        pki = self._server.pki
        authority = x509.load_pem_x509_certificate((pki / "client-ca.crt").read_bytes())
        key = serialization.load_pem_private_key((pki / "client-ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return self.signed(
            user, *groups, issuer=authority.subject, by=ec.generate_private_key(ec.SECP256R1()) if foreign else key,
            begins=begins, ends=ends,
        )  # fmt: skip

    def signed(
        self,
        user: str,
        *groups: str,
        issuer: x509.Name,
        by: ec.EllipticCurvePrivateKey,
        begins: timedelta = -HOUR,
        ends: timedelta = HOUR,
    ) -> ssl.SSLContext:
        """Return TLS with a client certificate that a key has signed."""
        own, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        words = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([*words, x509.NameAttribute(NameOID.COMMON_NAME, user)]))
            .issuer_name(issuer)
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(by, hashes.SHA256())
        )
        stem = self._directory / f"client-{next(_names)}"
        crt, private = stem.with_suffix(".crt"), stem.with_suffix(".key")
        crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return self._with(crt, private)

    async def grant(self, user: str, resources: Sequence[str], verbs: Sequence[str]) -> None:
        """Let a user do something with `nodes/…`."""
        name = f"kubelet-test-{next(_names)}"
        rule = {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs)}
        await self._admin.create(_ROLES, {"metadata": {"name": name}, "rules": [rule]})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        await self._admin.create(_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
        self._made += [f"{_BINDINGS}/{name}", f"{_ROLES}/{name}"]

    async def token(self, account: str, resources: Sequence[str] = (), verbs: Sequence[str] = ()) -> str:
        """Return a token of a new ServiceAccount that may do this."""
        accounts = f"/api/v1/namespaces/{self._namespace}/serviceaccounts"
        await self._admin.create(accounts, {"metadata": {"name": account}})
        if resources:
            await self.grant(f"system:serviceaccount:{self._namespace}:{account}", resources, verbs)
        body: dict[str, Any] = {"spec": {"expirationSeconds": 3600}}
        made = await self._admin.create(f"{accounts}/{account}/token", body)
        return str(made["status"]["token"])

    def _with(self, certificate: Path, key: Path) -> ssl.SSLContext:
        context = self.nobody()
        context.load_cert_chain(certificate, key)
        return context


def base_of(node: dict[str, Any]) -> str:
    """Return the URL of a Node's kubelet API, as its status declares it."""
    addresses = {a["type"]: a["address"] for a in node["status"]["addresses"]}
    return f"https://{addresses['InternalIP']}:{node['status']['daemonEndpoints']['kubeletEndpoint']['Port']}"


@asynccontextmanager
async def client(node: dict[str, Any], tls: ssl.SSLContext, token: str = "") -> AsyncIterator[Client]:
    """Open a client of a Node's kubelet API."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Client(base_of(node), session)
