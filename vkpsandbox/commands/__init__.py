"""Commands that the sandbox adds to `vkprovider`, through the entry-point group `vkprovider.commands`.

* `sandbox`: start, list and stop sandboxes.
* `demo`: play a Deployment of lablets on a sandbox.
"""

from typing import Final

COMMANDS: Final = {
    "sandbox": ("vkpsandbox.commands.sandbox:sandbox", "A real Kubernetes control plane with simulated CML workers."),
    "demo": ("vkpsandbox.commands.demo:demo", "Show a Deployment of lablets on a sandbox, from start to finish."),
}
"""Subcommand: (module:attribute of the click command, one line of help)."""
