"""Which API server, with which credentials: those of a kubeconfig or of the Pod's ServiceAccount.

`login` reads kubeconfigs by `kubernetes_asyncio`, and is imported for these alone: that takes 40 MB, which a Pod does
without. A ServiceAccount is three files, of which the token changes while the process runs.
"""

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.http.credentials import ClusterAccess, bearer, proxy_for, renewed_from, trust_in
from vkprovider.platform.reasons import StartReason

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_AGE_S_MAX: Final = 60.0
"""A kubelet rotates projected tokens 20 % before they expire; reading them once a minute is soon enough."""
IN_CLUSTER: Final = "in-cluster"
_DEFAULT: Final = "~/.kube/config"


async def load(kubeconfig: str | None = None, context: str | None = None) -> ClusterAccess:
    """Load credentials as client-go does: the argument, KUBECONFIG, the ServiceAccount, `~/.kube/config`.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`,
            `ServiceAccountInvalid`.
        Unauthorized: A login plugin refused.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and _is_in_cluster():
        return _in_cluster(SERVICE_ACCOUNT)
    from vkprovider.platform.kube.http import login  # noqa: PLC0415 (see above)

    return await login.log_in(named or _DEFAULT, context)


async def load_for(token: str, kubeconfig: str | None = None, context: str | None = None) -> ClusterAccess:
    """Return the access of somebody else to the API server that `load` finds: its CA, and no credentials but a token.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`,
            `ServiceAccountInvalid`.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and _is_in_cluster():
        return replace(_in_cluster(SERVICE_ACCOUNT), authorization=f"Bearer {token}", renew=None)
    from vkprovider.platform.kube.http import login  # noqa: PLC0415 (see above)

    return await login.log_in_with(token, named or _DEFAULT, context)


def context_of(kubeconfig: str | None, context: str | None) -> str:
    """Return the name of the context that `load` uses with these arguments; `in-cluster` without a kubeconfig.

    Raises:
        InputError: The kubeconfig is missing or wrong.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and _is_in_cluster():
        return IN_CLUSTER
    from vkprovider.platform.kube.http import kubeconfig as kubeconfigs  # noqa: PLC0415 (see above)

    return kubeconfigs.read(named or _DEFAULT, context).context


def _is_in_cluster() -> bool:
    addressed = os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT")
    return bool(addressed) and (SERVICE_ACCOUNT / "token").is_file()


def _in_cluster(folder: Path) -> ClusterAccess:
    """Return the access of a Pod.

    Raises:
        InputError: `ServiceAccountInvalid`, `TokenMissing`, `KubeconfigUnsupported`.
    """
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token, authorities = folder / "token", folder / "ca.crt"
    namespace = "default"
    with contextlib.suppress(OSError):
        namespace = (folder / "namespace").read_text().strip() or namespace
    authorization = bearer(token)
    try:
        tls = trust_in(str(authorities))
    except OSError as error:  # also those of OpenSSL
        raise InputError(StartReason.SERVICE_ACCOUNT_INVALID, f"{authorities} cannot be used: {error}") from None
    return ClusterAccess(server, namespace, authorization, tls, proxy=proxy_for(server), renew=renewed_from(token))
