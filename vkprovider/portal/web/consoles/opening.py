"""Which console a visitor opens, as whom, and how; and how `exec` at the API server names it."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from vkprovider.platform.rights import Right
from vkprovider.portal.web.consoles.frames import Mode


class ConsoleTarget(NamedTuple):
    """A console.

    Attributes:
        namespace, pod: The lablet.
        container: Its container that is the lablet as a whole.
        device: The label of the device, or the name of its container.
    """

    namespace: str
    pod: str
    container: str
    device: str

    def path(self) -> str:
        """Return the path of `exec`."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods/{quote(self.pod, safe='')}/exec"

    @property
    def right(self) -> Right:
        """The right by which it is opened."""
        return Right("create", "pods/exec", self.namespace, self.pod)

    def command(self, words: Sequence[str], *, stdin: bool, tty: bool, stderr: bool = True) -> list[tuple[str, str]]:
        """Return the query by which words are executed in the container of the lablet as a whole."""
        wants = {"stdin": stdin, "stdout": True, "tty": tty, "stderr": stderr and not tty}
        flags = [(name, "true") for name, wanted in wants.items() if wanted]
        return [("container", self.container), *(("command", word) for word in words), *flags]


class Opening(NamedTuple):
    """What a visitor asks for who opens a console.

    Attributes:
        caller: Their username.
        name: What others who see the lab read of them.
        mode: Whether they type, watch, or take over.
        again: When their page opened this console, if it does so once more by itself (Unix seconds); else 0.
    """

    caller: str
    name: str
    mode: Mode
    again: float = 0.0
