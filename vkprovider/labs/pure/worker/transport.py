"""The way to a worker: where it leads, and whether what is sent could be read or answered by others on it."""

from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.reasons import ConditionReason, WorkerReason
from vkprovider.platform.messages import Condition


def destination_of(name: str, spec: CMLWorkerSpec) -> str:
    """Return the receiver of a worker's requests: CML at its url, or the agent that bears the CMLWorker's name.

    >>> destination_of("cml-1", CMLWorkerSpec(tunnel="mqtt", url="https://192.0.2.7"))
    'agent://cml-1'
    """
    return spec.cml_url if spec.tunnel == "direct" else f"agent://{name}"


def insecure(spec: CMLWorkerSpec) -> Condition | None:
    """Return the condition TransportInsecure of a CMLWorker; None if its transport is secure, or is an agent's."""
    if spec.tunnel != "direct":
        return None
    if spec.cml_url.lower().startswith("http://"):
        text = "spec.url is http: password, token and labs can be read on the way; use https and spec.tls.caBundle"
        return Condition(ConditionReason.TRANSPORT_INSECURE, "True", WorkerReason.PLAIN_TEXT, text)
    if spec.tls.insecure_skip_verify and not spec.cml_url.startswith("null:"):
        text = "spec.tls.insecureSkipVerify is set: an impostor would get the password; use spec.tls.caBundle instead"
        return Condition(ConditionReason.TRANSPORT_INSECURE, "True", WorkerReason.NOT_VERIFIED, text)
    return None
