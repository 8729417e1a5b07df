"""Whether what is sent to a worker, its password among it, could be read or answered by others on the way."""

from vkprovider.api.messages import Condition
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.api.reasons import WorkerReason


def insecure(spec: CMLWorkerSpec) -> Condition | None:
    """Return the condition TransportInsecure of a CMLWorker; None if its transport is secure."""
    if spec.url.lower().startswith("http://"):
        text = "spec.url is http: password, token and labs can be read on the way; use https and spec.tls.caBundle"
        return Condition("TransportInsecure", "True", WorkerReason.PLAIN_TEXT, text)
    if spec.tls.insecure_skip_verify and not spec.url.startswith("null:"):
        text = "spec.tls.insecureSkipVerify is set: an impostor would get the password; use spec.tls.caBundle instead"
        return Condition("TransportInsecure", "True", WorkerReason.NOT_VERIFIED, text)
    return None
