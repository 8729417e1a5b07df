"""What a Secret may be used for: its label names the purpose, an annotation the hosts that a password may be sent to.

Who writes a CMLWorker or a LabletDefinition need not be allowed to read Secrets. Without these checks, naming a Secret
there would be enough to have its content sent to a host of one's choice, or shown to a learner.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from vkprovider.lablet import names
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import CustomResource, Metadata, Secret

_PORTS: Final = {"https": 443, "http": 80, "agent": None}
"""Default ports of the schemes; `agent://NAME` is the agent beside a worker, which passes the password on to CML."""


_KEYS: Final = ("username", "password")
"""The keys of a worker's Secret."""


def credentials_of(secret: Secret, namespace: str, url: str) -> tuple[str, str] | Fault:
    """Return the user name and the password of a worker's Secret, or why they cannot be used.

    Args:
        secret: The Secret.
        namespace: That of logins.
        url: Where they would be sent.

    Returns:
        Or `SecretNotAllowed` if they may not be sent there, `CredentialsInvalid` if they are incomplete or damaged.
    """
    if refusal := worker_secret_refusal(secret.metadata, namespace, url):
        return Fault(WorkerReason.SECRET_NOT_ALLOWED, refusal)
    where, data = f"Secret {namespace}/{secret.metadata.name}", secret.data
    if missing := [key for key in _KEYS if not data.get(key)]:
        return Fault(WorkerReason.CREDENTIALS_INVALID, f"{where} lacks the key {' and '.join(missing)}")
    try:
        username, password = (data[key].decode() for key in _KEYS)
    except UnicodeDecodeError:
        return Fault(WorkerReason.CREDENTIALS_INVALID, f"{where}: username or password is not text")
    if broken := [key for key in _KEYS if data[key] != data[key].rstrip(b"\r\n")]:
        text = f"{where}: {' and '.join(broken)} ends with a line break; use `echo -n`, or --from-literal"
        return Fault(WorkerReason.CREDENTIALS_INVALID, text)
    return username, password


def worker_secret_refusal(secret: Metadata, namespace: str, url: str) -> str:
    """Return why a Secret's password may not be sent to `url`, with the command that allows it; "" if it may.

    >>> worker_secret_refusal(Metadata("cml-1"), "vkprovider-system", "https://cml-1.example.com")[:60]
    'Secret vkprovider-system/cml-1 may not be used for cml-1.exam'
    """
    host, used_for = host_of(url), secret.labels.get(names.LABEL_USED_FOR, "")
    written = secret.annotations.get(names.ANNOTATION_HOST, "")
    hosts = [known for entry in written.split(",") if (known := host_of(entry.strip()))]
    where = f"Secret {namespace}/{secret.name}"
    if used_for == names.USED_FOR_DEVICES:
        return f"{where} is for devices ({names.LABEL_USED_FOR}); name another in spec.credentialsSecretName"
    if not host:
        return f"{where}: the url has no host that it could be for"
    commands = []
    if used_for != names.USED_FOR_WORKER:
        commands.append(_command("label", namespace, secret.name, names.LABEL_USED_FOR, names.USED_FOR_WORKER))
    if host not in hosts:
        listed = ",".join([*dict.fromkeys(hosts), host])
        commands.append(_command("annotate", namespace, secret.name, names.ANNOTATION_HOST, listed))
    if not commands:
        return ""
    lacks = "its annotation does not name that host" if used_for == names.USED_FOR_WORKER else "it is not labelled so"
    return f"{where} may not be used for {host}: {lacks}. If it may: {' && '.join(commands)}"


def password_source(namespace: str, secret: str) -> str:
    """Return where the password of a worker stands, with the command that changes it.

    >>> print(password_source("vk", "cml-1"))
    Secret vk/cml-1: kubectl -n vk patch secret cml-1 -p '{"stringData":{"password":"NEW"}}'
    """
    body = '{"stringData":{"password":"NEW"}}'
    return f"Secret {namespace}/{secret}: kubectl -n {namespace} patch secret {secret} -p '{body}'"


def secrets_of(resources: Iterable[CustomResource]) -> frozenset[str]:
    """Return the names of the Secrets that CMLWorkers name, also those that cannot be used."""
    return frozenset(str(resource.spec.get("credentialsSecretName")) for resource in resources)


def device_secret_refusal(secret: Metadata, namespace: str, *, is_workers: bool) -> str:
    """Return why a Secret may not be shown to learners, with the command that allows it; "" if it may.

    Args:
        secret: Its metadata.
        namespace: That of logins.
        is_workers: Whether a CMLWorker names it: then no label makes it a devices' Secret.
    """
    used_for, where = secret.labels.get(names.LABEL_USED_FOR, ""), f"Secret {namespace}/{secret.name}"
    if is_workers or used_for == names.USED_FOR_WORKER:
        return f"{where} is a worker's and never shown to learners; name another in spec.deviceSecretName"
    if used_for != names.USED_FOR_DEVICES:
        command = _command("label", namespace, secret.name, names.LABEL_USED_FOR, names.USED_FOR_DEVICES)
        return f"{where} may not be used for devices: it is not labelled so. If learners may see it: {command}"
    return ""


def move_command(before: str, namespace: str) -> str:
    """Return the command by which an admin moves all logins from the provider's namespace into that of logins.

    Only the admin's own rights are used: nothing of vkprovider may read both. It stands in messages, where a run of
    blanks becomes one, and deletes nothing that is not in the namespace of logins: kubectl refuses others with `-n`.
    """
    drop = r"-e '/^ \{4\}resourceVersion:/d' -e '/^ \{4\}uid:/d'"
    return (
        f"kubectl -n {before} get secrets -l {names.LABEL_USED_FOR} -o yaml | sed {drop} "
        rf"-e 's/^\( \{{4\}}namespace:\) .*/\1 {namespace}/' | kubectl -n {namespace} apply --server-side -f - && "
        f"kubectl -n {before} delete secrets -l {names.LABEL_USED_FOR}"
    )


@lru_cache(maxsize=4096)
def host_of(entry: str) -> str:
    """Return a URL or an entry of the annotation in the annotation's form; "" if it is unreadable.

    Without a scheme it is https: a password for https is not sent in plain text to the same host.

    >>> host_of("https://CML-1.example.com:443/"), host_of("cml-1.example.com"), host_of("http://127.0.0.11:80")
    ('cml-1.example.com', 'cml-1.example.com', 'http://127.0.0.11')
    >>> host_of("agent://cml-1")
    'agent://cml-1'
    """
    try:
        parts = urlsplit(entry if "://" in entry else f"https://{entry}")
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    scheme = "" if parts.scheme == "https" else f"{parts.scheme}://"
    return f"{scheme}{host}" if port in {None, _PORTS[parts.scheme]} else f"{scheme}{host}:{port}"


def _command(verb: str, namespace: str, secret: str, key: str, value: str) -> str:
    return f"kubectl -n {namespace} {verb} --overwrite secret {secret} {key}={value}"
