"""How a command ended, as clients read it: a `metav1.Status`, or plain text before v4 of the protocol.

Source: cri-streaming `pkg/streaming/remotecommand`, client-go `tools/remotecommand/v4.go`.
"""

from typing import Any, Final

import msgspec

from vkprovider.labs.kubelet.spi import Exit

_CODE_MAX: Final = 255
"""kubectl reads the exit code as a byte."""


def status_json(status: Exit) -> bytes:
    """Return a `metav1.Status`."""
    return msgspec.json.encode({"metadata": {}, **_fields(status)})


def status_text(status: Exit) -> bytes:
    """Return plain text; none for success."""
    return b"" if _is_success(status) else str(_fields(status)["message"]).encode()


def _is_success(status: Exit) -> bool:
    return not status.code and not status.reason


def _fields(status: Exit) -> dict[str, Any]:
    if _is_success(status):
        return {"status": "Success"}
    if status.reason or not 0 < status.code <= _CODE_MAX:
        message = status.message or f"the command ended with {status.code}"
        return {"status": "Failure", "reason": status.reason or "InternalError", "message": message, "code": 500}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": status.message or f"command terminated with non-zero exit code: {status.code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(status.code)}]},
    }
