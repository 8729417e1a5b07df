"""The HTTP page of the provider: where it listens and how it encrypts; the parts add its routes."""

import ssl

from vkprovider.labs.settings.process import Settings
from vkprovider.labs.wiring.parts.labs import NO_LABS
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.reasons import StartReason


def page_of(settings: Settings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    return Page(
        settings.http,
        settings.replica.instance_id,
        tls=_tls(settings),
        starting={**NO_LABS, "owned_nodes": []},
    )


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the context of the page; None if it is plain HTTP.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    own = ["localhost", "127.0.0.1", f"vkprovider.{settings.replica.namespace}.svc", settings.kubelet.internal_ip]
    client_ca = settings.http_tunnel.client_ca_file
    tls = page_tls(settings.http, filter(None, own), client_ca=client_ca)
    if tls is None and client_ca is not None:
        text = (
            "VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE is set, but the page serves plain HTTP: see VKPROVIDER_HTTP_TLS_CERT"
        )
        raise InputError(StartReason.SETTING_INVALID, text)
    return tls
