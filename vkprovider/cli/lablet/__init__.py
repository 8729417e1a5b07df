"""`kubectl lablet`: a kubectl plugin, found by its name `kubectl-lablet` on PATH.

* `group`: the command itself, with the table of its subcommands; `commands`: their arguments, options and help;
  `completion`: what the shell completes.
* `lists` (list), `ports`, `configs`: look.
* `console` (console, logs, forward), `wall` (consoles of several learners), `login`, `portal`: use a lab.
* `acts` (stop, start, collect, reset), `assign`, `extend`, `release`: operate lablets; `classes` (assign --from-file,
  define, doctor): a whole class.
* `refresh`, `granting` (grant), `approve`: for admins of definitions, of instructors and of workers.

What a subcommand does is imported only when it runs: help and completion of names and options take a tenth of a second,
a client of the Kubernetes API one more. Colours, tables and the line of progress are plain click: for one
table and one line, rich would cost 50 to 85 ms of each start and four more distributions (13 MB).
"""

from vkprovider.cli.lablet.group import main

__all__ = ["main"]
