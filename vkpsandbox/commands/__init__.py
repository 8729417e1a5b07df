"""Commands that the sandbox adds to `vkprovider`, through the entry-point group `vkprovider.commands`.

* `sandbox`: start, list and stop sandboxes.
* `demo`: play a Deployment of lablets on a sandbox.
* `sim`: run one simulator alone.
"""

from typing import Final

COMMANDS: Final = {
    "sandbox": ("vkpsandbox.commands.sandbox:sandbox", "A real Kubernetes control plane with simulated CML workers."),
    "demo": ("vkpsandbox.commands.demo:demo", "Show a Deployment of lablets on a sandbox, from start to finish."),
    "sim": ("vkpsandbox.commands.sim:sim", "Run a simulator alone."),
}
"""Subcommand: (module:attribute of the click command, one line of help)."""
