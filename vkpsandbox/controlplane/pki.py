"""Keys and certificates of a sandbox: one CA for servers, one for clients, elliptic curves throughout.

A sandbox lives for hours or days; everything is valid for a year and dies with its directory.
"""

import ipaddress
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY: Final = timedelta(days=365)

SERVER_NAMES: Final = (
    "127.0.0.1",
    "10.96.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
"""Names in the servers' certificates: 10.96.0.1 is the service `kubernetes`."""

CLIENTS: Final = {
    "admin": ("kubernetes-admin", "system:masters"),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "apiserver-kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
    "apiserver-etcd-client": ("kube-apiserver-etcd-client", ""),
    "front-proxy-client": ("front-proxy-client", ""),
}
"""Client certificate: (user, group), as kubeadm names them."""
TOKENS: Final = "tokens.csv"
"""The file with the tokens of users: the provider's page asks for one, and a certificate is none."""
TEACHER: Final = "teacher"
"""A user who has no right until somebody grants one."""


@dataclass(frozen=True)
class Authority:
    """A certificate authority."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def write_pki(
    directory: Path, *, host: str = "", clients: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> None:
    """Write `<name>.crt` and `<name>.key` of all, `sa.key` and `sa.pub` for ServiceAccount tokens, and `tokens.csv`.

    `server-ca` signs `server` and, through the API server's signers, kubelet serving certificates; `client-ca` signs
    the clients of the API server and of etcd; `front-proxy-ca` signs only the aggregation layer's client, which may
    claim any identity.

    Args:
        directory: Where; it is made.
        host: A further address of the servers.
        clients: Further client certificates, as in `CLIENTS`.
    """
    directory.mkdir(mode=0o700, parents=True)
    server_ca, client_ca, front_proxy_ca = (
        write_authority(directory, name) for name in ("server-ca", "client-ca", "front-proxy-ca")
    )
    usages = [ExtendedKeyUsageOID.SERVER_AUTH]
    names = [*SERVER_NAMES, *([host] if host else [])]
    write_certificate(directory, "server", server_ca, _subject("vkprovider-sandbox"), usages=usages, names=names)
    for name, (user, group) in {**CLIENTS, **clients}.items():
        authority = front_proxy_ca if name == "front-proxy-client" else client_ca
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        write_certificate(directory, name, authority, _subject(user, group), usages=usages)
    tokens = ec.generate_private_key(ec.SECP256R1())
    _write(directory / "sa.key", _pem(tokens))
    public = tokens.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write(directory / "sa.pub", public)
    lines = [f'{secrets.token_urlsafe(32)},{user},,"{group}"\n' for user, group in (CLIENTS["admin"], (TEACHER, ""))]
    _write(directory / TOKENS, "".join(lines).encode())


def token_of(directory: Path, user: str) -> str:
    """Return the token of a user."""
    lines = (line.split(",") for line in (directory / TOKENS).read_text().splitlines())
    return next(token for token, name, *_ in lines if name == user)


def write_authority(directory: Path, name: str) -> Authority:
    """Make a certificate authority and write it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"vkprovider-sandbox-{name}")
    builder = _builder(subject, subject, key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_pair(directory, name, key, certificate)
    return Authority(key, certificate)


def write_certificate(
    directory: Path,
    name: str,
    authority: Authority,
    subject: x509.Name,
    *,
    usages: list[x509.ObjectIdentifier],
    names: Sequence[str] = (),
) -> None:
    """Make a certificate signed by an authority and write it; `names` are those that a server is valid for."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, authority.certificate.subject, key.public_key())
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if names:
        alternatives = x509.SubjectAlternativeName([_general_name(each) for each in names])
        builder = builder.add_extension(alternatives, critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
    )
    _write_pair(directory, name, key, builder.sign(authority.key, hashes.SHA256()))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    """Return a builder with the fields of every certificate."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))  # so that a process whose clock is behind trusts them
        .not_valid_after(now + VALIDITY)
    )


def _subject(user: str, group: str = "") -> x509.Name:
    """Return a subject as Kubernetes reads it: common name = user, organization = group."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _general_name(name: str) -> x509.GeneralName:
    """Return an alternative name: an address if it is one, else a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key as Kubernetes reads it."""
    encryption = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, encryption)


def _write_pair(directory: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """Write a certificate and its key."""
    _write(directory / f"{name}.key", _pem(key))
    _write(directory / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
