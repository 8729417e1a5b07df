"""Opens a deployment by its URL: one connection pool, whichever node's lablet a call is for."""

from typing import Final

from yarl import URL

from tunnels.direct import DirectTransport, trusting
from vkprovider.labs.lds.client import LdsClient, check_guard
from vkprovider.labs.lds.dialect import LdsDialect
from vkprovider.labs.lds.operations import BASE, OPERATIONS
from vkprovider.rest.calls import Calls
from vkprovider.rest.client import Reporter, Retry, ServiceClient
from vkprovider.rest.exchange import Exchange
from vkprovider.rest.operations import allow_list
from vkprovider.rest.tokens import GivenToken, TokenReader

RETRY: Final = Retry(attempts_max=3, first_s=0.2, cap_s=2.0)

CALLS: Final = Calls(long_bounds=5)
"""The calls of this process: clients come and go with the configuration, but a count only ever grows."""


def open_deployment(
    deployment: str,
    base_url: str,
    *,
    token: TokenReader,
    timeout_s: float,
    ca_bundle: str | None = None,
    report: Reporter | None = None,
    user_agent: str = "",
    retry: Retry = RETRY,
) -> LdsClient:
    """Open a deployment; nothing is sent before the first call.

    Args:
        deployment: Its id, for messages and metrics.
        base_url: `https://host[:port][/path]`.
        token: Reads its token.
        timeout_s: Seconds for one call, retries included.
        ca_bundle: PEM text of the authorities to trust instead of the system's.
        report: Called with the outcome of each call.
        user_agent: The name of this client in the LDS's log.
        retry: When to send a request again.

    Raises:
        CertificateInvalid: `ca_bundle` is not PEM text.
    """
    url = URL(base_url)
    base = url.raw_path.rstrip("/") + BASE
    name = f"LDS {deployment}"
    transport = DirectTransport(
        str(url.origin()),
        tls=trusting(ca_bundle=ca_bundle),
        allow=allow_list(OPERATIONS, base),
        guard=check_guard,
        user_agent=user_agent,
    )
    service = ServiceClient(
        Exchange(transport, LdsDialect(name), base=base, calls=CALLS, labels=(deployment,)),
        GivenToken(name, token),
        timeout_s=lambda operation: max(operation.timeout_s, timeout_s),
        retry=retry,
        report=report,
    )
    return LdsClient(deployment, service)
