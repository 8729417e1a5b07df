"""The HTTP page of the provider: where it listens and how it encrypts; the parts add its routes."""

from vkprovider.api.errors import InputError
from vkprovider.api.reasons import StartReason
from vkprovider.app.parts.labs import NO_LABS
from vkprovider.app.settings import Settings
from vkprovider.runtime.page import Page
from vkprovider.web.tls import ServingCertificate


def page_of(settings: Settings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    certificate = _certificate(settings)
    return Page(
        settings.http,
        settings.replica.instance_id,
        tls=certificate.context if certificate is not None else None,
        starting={**NO_LABS, "owned_nodes": []},
    )


def _certificate(settings: Settings) -> ServingCertificate | None:
    """Return the certificate of the page; None if it is plain HTTP.

    Raises:
        InputError: `SettingInvalid`: it cannot be used.
    """
    http = settings.http
    own = ["localhost", "127.0.0.1", f"vkprovider.{settings.replica.namespace}.svc", settings.kubelet.internal_ip]
    hosts = [host for host in own if host] if http.tls_self_signed else []
    client_ca = settings.http_tunnel.client_ca_file
    if http.tls_files or hosts:
        return ServingCertificate(http.tls_files, hosts=hosts, client_ca=client_ca)
    if client_ca is not None:
        text = (
            "VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE is set, but the page serves plain HTTP: see VKPROVIDER_HTTP_TLS_CERT"
        )
        raise InputError(StartReason.SETTING_INVALID, text)
    return None
