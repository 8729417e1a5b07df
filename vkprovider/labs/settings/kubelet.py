"""Settings of the kubelet API: `kubectl logs`, `attach`, `exec`, `port-forward` and `top` on lablets."""

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, Field

from vkprovider.platform.settings import PORT_MAX, Group, bounds


def _ports(text: str) -> str:
    """Check a range of ports: `0`, `FIRST-LAST` or one port."""
    try:
        first, last = bounds(text)
    except ValueError:
        first, last = -1, -1
    if not (0 < first <= last <= PORT_MAX or first == last == 0):
        raise ValueError(f"{text[:40]!r} is neither 0 nor a range of ports such as 20250-24249")
    return text


def _address(text: str | None) -> str | None:
    """Check an IP address."""
    return str(ipaddress.ip_address(text)) if text else None


Address = Annotated[str | None, AfterValidator(_address)]


class KubeletSettings(Group):
    """The kubelet API of the Nodes."""

    enabled: bool = Field(
        default=True,
        validation_alias="VKPROVIDER_KUBELET",
        description="Whether the replica serves the kubelet API of its Nodes: `kubectl logs`, `attach`, `exec`, "
        "`port-forward` and `top`. Without it the Nodes declare neither a port nor an InternalIP.",
    )
    internal_ip: Address = Field(
        None,
        validation_alias=AliasChoices("VKPROVIDER_INTERNAL_IP", "POD_IP"),
        description="InternalIP of the Nodes: where the API server and metrics-server reach the kubelet API of this "
        "replica. By default the address by which it reaches others.",
    )
    host: Address = Field(
        None,
        validation_alias="VKPROVIDER_KUBELET_HOST",
        description="Address that the kubelet API listens on; every one of this host if unset.",
    )
    ports: Annotated[str, AfterValidator(_ports)] = Field(
        "20250-24249",
        validation_alias="VKPROVIDER_KUBELET_PORTS",
        description="Ports of the kubelet API, one for each Node of the replica: `FIRST-LAST`, or `0` for any free "
        "ones. The API server must reach them all.",
    )
    certificate: Literal["csr", "self-signed"] = Field(
        "csr",
        validation_alias="VKPROVIDER_KUBELET_CERTIFICATE",
        description="The certificate of the kubelet API: `csr` requests one of the signer "
        "`kubernetes.io/kubelet-serving`, and until that is approved uses one that the replica makes itself; "
        "`self-signed` stays with the latter, which metrics-server accepts only by `--kubelet-insecure-tls`.",
    )
    certificate_s: int = Field(
        30 * 86400,
        validation_alias="VKPROVIDER_KUBELET_CERTIFICATE_SECONDS",
        ge=600,
        description="Seconds for which a certificate is requested; it is renewed after four fifths of its life.",
    )
    sessions_max: int = Field(
        1000,
        validation_alias="VKPROVIDER_KUBELET_SESSIONS_MAX",
        ge=1,
        description="Open logs, consoles and port-forwards of a replica, at most.",
    )

    @property
    def port_range(self) -> tuple[int, int]:
        """The first and the last port; 0, 0 for any free ones."""
        return bounds(self.ports)
