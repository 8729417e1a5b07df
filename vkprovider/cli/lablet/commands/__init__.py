"""The commands of `kubectl lablet` as a shell sees them: names, arguments, options, help.

What a command does is in the module of that command beside this package, and is imported when it runs: help and
completion wait for nothing but click.

* `looking`: commands that look: list, ports, configs.
* `using`: commands that use a lab: console, logs, forward, screen, capture, login, portal.
* `learners`: commands for learners: their time, and their labs' stop, start and reset.
* `administering`: commands for definitions, for what is wrong, and for admins: define, schedule, doctor,
  refresh, grant, approve.
"""
