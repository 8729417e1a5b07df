import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from tests.component.cml.conftest import MiniCml, Secret, reply, serving
from tests.support.tunnels import eventually, running
from vkprovider.agent.process import open_upstream
from vkprovider.agent.settings import AgentSettings
from vkprovider.agent.watching import Watch
from vkprovider.cml.dialect import BY_AGENT
from vkprovider.cml.factory import open_labs, session_over
from vkprovider.cml.spi import Labs
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import InputError, TlsFailed, Unavailable


@asynccontextmanager
async def worker(leaf: trustme.LeafCert, *, verify: bool = True, ca_bundle: str | None = None) -> AsyncIterator[Labs]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    async with serving(MiniCml(), context) as mini:
        labs = open_labs(mini.url, Secret().read, verify=verify, ca_bundle=ca_bundle)
        try:
            yield labs
        finally:
            await labs.close()


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


async def test_a_trusted_authority_will_do(authority: trustme.CA) -> None:
    async with worker(authority.issue_cert("127.0.0.1"), ca_bundle=pem(authority)) as labs:
        assert await labs.list_lab_ids() == ["lab-1"]


async def test_verification_can_be_switched_off(authority: trustme.CA) -> None:
    async with worker(authority.issue_cert("other.example.net"), verify=False) as labs:
        assert await labs.list_lab_ids() == ["lab-1"]


async def test_an_unknown_authority(authority: trustme.CA) -> None:
    async with worker(authority.issue_cert("127.0.0.1")) as labs:
        with pytest.raises(TlsFailed, match=r"put the authority's into spec\.tls\.caBundle") as caught:
            await labs.list_lab_ids()
        assert "insecureSkipVerify" not in caught.value.message


async def test_another_authority_than_that_of_the_bundle(authority: trustme.CA) -> None:
    async with worker(authority.issue_cert("127.0.0.1"), ca_bundle=pem(trustme.CA())) as labs:
        with pytest.raises(TlsFailed, match=r"signed by another authority than those in spec\.tls\.caBundle") as caught:
            await labs.list_lab_ids()
        assert "insecureSkipVerify" not in caught.value.message


async def test_another_host_name(authority: trustme.CA) -> None:
    async with worker(authority.issue_cert("other.example.net"), ca_bundle=pem(authority)) as labs:
        with pytest.raises(TlsFailed, match="another host name"):
            await labs.list_lab_ids()


async def test_an_expired_certificate(authority: trustme.CA) -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    leaf = authority.issue_cert("127.0.0.1", not_before=past - dt.timedelta(days=1), not_after=past)
    async with worker(leaf, ca_bundle=pem(authority)) as labs:
        with pytest.raises(TlsFailed, match="has expired: renew it"):
            await labs.list_lab_ids()


async def test_a_certificate_of_tomorrow(authority: trustme.CA) -> None:
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    leaf = authority.issue_cert("127.0.0.1", not_before=soon, not_after=soon + dt.timedelta(days=1))
    async with worker(leaf, ca_bundle=pem(authority)) as labs:
        with pytest.raises(TlsFailed, match="not valid yet"):
            await labs.list_lab_ids()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cml-controller")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    path = folder / "worker.pem"
    path.write_bytes(
        text
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, text.decode()


async def test_a_self_signed_certificate_is_its_own_bundle(tmp_path: Path) -> None:
    context, text = self_signed(tmp_path)
    async with serving(MiniCml(), context) as mini:
        labs = open_labs(mini.url, Secret().read)
        with pytest.raises(TlsFailed, match=r"is self-signed: put it into spec\.tls\.caBundle"):
            await labs.list_lab_ids()
        await labs.close()
        labs = open_labs(mini.url, Secret().read, ca_bundle=pem(trustme.CA()))
        with pytest.raises(TlsFailed, match=r"self-signed and not the one in spec\.tls\.caBundle: put it there"):
            await labs.list_lab_ids()
        await labs.close()
        labs = open_labs(mini.url, Secret().read, ca_bundle=text)
        assert await labs.list_lab_ids() == ["lab-1"]
        await labs.close()


async def said_by_agent(settings: AgentSettings, said: str) -> None:
    """Run an agent's look at CML until it logs a text."""
    watch = open_upstream(settings)
    assert isinstance(watch, Watch)
    try:
        with capture_logs() as lines:
            async with running(lambda: watch.run(lambda: None)):
                await eventually(lambda: any(said in f"{line['event']} {line.get('error')}" for line in lines))
    finally:
        await watch.close()


async def test_behind_an_agent_the_remedy_is_the_agents(tmp_path: Path) -> None:
    """The same certificate, seen from a replica and by the agent: tls.caBundle has no effect there."""
    context, text = self_signed(tmp_path)
    credentials, trusted = tmp_path / "credentials", tmp_path / "ca.pem"
    credentials.write_text("admin\nright\n")
    async with serving(MiniCml(), context) as mini:
        mini.replies["/nodes"] = reply(200, "[]")
        untrusting = AgentSettings(name="w1", url=mini.url, credentials_file=str(credentials))
        upstream = open_upstream(untrusting)
        labs = CmlLabs(session_over(upstream, "agent://w1", None, trust=BY_AGENT), "agent://w1")
        for call in (labs.list_lab_ids, labs.version):
            with pytest.raises(
                TlsFailed, match="put it into the PEM file that VKPROVIDER_AGENT_CA_FILE of the agent"
            ) as e:
                await call()
            assert "caBundle" not in e.value.message
        await labs.close()
        await said_by_agent(untrusting, "put it into a PEM file that VKPROVIDER_AGENT_CA_FILE names")
        trusting = untrusting.model_copy(update={"ca_file": str(trusted)})
        trusted.write_text(pem(trustme.CA()))
        await said_by_agent(trusting, "not the one in the file of VKPROVIDER_AGENT_CA_FILE: put it there")
        trusted.write_text(text)
        await said_by_agent(trusting, "CML answers")


async def test_a_server_without_tls(mini: MiniCml) -> None:
    labs = open_labs(mini.url.replace("http:", "https:"), Secret().read)
    with pytest.raises(Unavailable, match="no TLS"):
        await labs.list_lab_ids()
    await labs.close()


async def test_tls_without_asking_for_it(authority: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with serving(MiniCml(), context) as mini:
        labs = open_labs(mini.url.replace("https:", "http:"), Secret().read)
        with pytest.raises(Unavailable):
            await labs.version()
        await labs.close()


def test_a_wrong_bundle_is_an_input_error() -> None:
    with pytest.raises(InputError, match="PEM"):
        open_labs("https://127.0.0.1", Secret().read, ca_bundle="x")
