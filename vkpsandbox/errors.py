"""The errors of a sandbox."""

from pathlib import Path

from vkprovider.platform.errors import VkproviderError

LOG_LINES = 12
"""Lines of a process's log that an error carries."""


class SandboxError(VkproviderError):
    """A sandbox cannot do what was asked; the message names the process and the remedy."""


class NetworkFailed(SandboxError):  # noqa: N818 (what happened, not what is wrong with the sandbox)
    """A file could not be fetched because of the network, or of a server that fails."""


def log_tail(log: Path, lines: int = LOG_LINES) -> str:
    """Return the last lines of a log, indented, headed by its path; a sentence if there are none."""
    try:
        text = log.read_text(errors="replace")
    except OSError as error:
        return f"  (no log: {error})"
    last = text.splitlines()[-lines:]
    return "\n".join([f"  last lines of {log}:", *(f"  | {line}" for line in last)]) if last else f"  ({log} is empty)"
