"""The words of a `Refusal`, and the errors that they stand for."""

from typing import Final, get_args

from tunnels.base import (
    CertificateFault,
    CertificateInvalid,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    RequestRefused,
    StaleEpoch,
    TransportError,
)
from tunnels.wire import Refusal

TEXT_MAX: Final = 1024

EXPIRED: Final = "expired"
"""The request came too late, by the agent's clock."""
FORGOTTEN: Final = "forgotten"
"""The operation was carried out; its answer was too large to be remembered."""
BUSY: Final = "busy"
"""The agent remembers as many operations as it can. It did not run this one, but may run a doubled message of it."""
LEAVING: Final = "leaving"
"""The agent ends, and does not begin this command, now or later: the next boot may."""
STALE: Final = "stale-epoch"
NOT_ALLOWED: Final = "not-allowed"
CERTIFICATE: Final = "certificate"
UNREACHABLE: Final = "unreachable"
LOST: Final = "lost"
NAME_TAKEN: Final = "name-taken"
"""Another agent of the same name was there first; said by a caller."""

_ERRORS: Final[dict[str, type[TransportError]]] = {
    EXPIRED: DeadlineExceeded,
    STALE: StaleEpoch,
    NOT_ALLOWED: RequestRefused,
    UNREACHABLE: ConnectFailed,
    LOST: ConnectionLost,
}


def refusal(op: str, code: str, text: str) -> Refusal:
    """Return a refusal, its text cut to what a message holds."""
    return Refusal(code=code, text=text[:TEXT_MAX], op=op)


def of_error(op: str, error: TransportError) -> Refusal:
    """Return the refusal of an agent whose own transport failed."""
    if isinstance(error, CertificateInvalid):
        return Refusal(code=CERTIFICATE, text=str(error)[:TEXT_MAX], op=op, detail=error.fault)
    code = next((code for code, kind in _ERRORS.items() if type(error) is kind), LOST)
    return refusal(op, code, str(error))


def error_of(said: Refusal, where: str) -> TransportError:
    """Return the error that a refusal stands for; an unknown code counts as a lost connection.

    Args:
        said: The refusal.
        where: The agent, for the message.
    """
    message = f"{where}: {said.text or said.code}"
    if said.code == CERTIFICATE:
        fault: CertificateFault = "untrusted"
        for known in get_args(CertificateFault):
            if known == said.detail:
                fault = known
        return CertificateInvalid(message, fault=fault)
    return _ERRORS.get(said.code, ConnectionLost)(message)
