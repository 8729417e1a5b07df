"""Simulators of the systems around vkprovider, of which they import nothing: tests judge it by them.

* `cml`: a controller of Cisco Modeling Labs; `lds`: a Lab Delivery System; `http`: the shell that both share.
* `sim`: the command that runs one alone.
"""

from typing import Final

COMMANDS: Final = {"sim": ("vkpsim.sim:sim", "Run a simulator alone.")}
"""What they add to `vkprovider`: subcommand: (module:attribute of the click command, one line of help)."""
