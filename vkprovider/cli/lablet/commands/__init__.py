"""The commands of `kubectl lablet` as a shell sees them: names, arguments, options, help.

What a command does is in the module of that command beside this package, and is imported when it runs: help and
completion wait for nothing but click.

* `looking` (list, ports, configs), `using` (console, logs, forward, login, portal).
* `learners` (assign, extend, release, collect), `acting` (stop, start, reset).
* `administering` (define, doctor, refresh, grant, approve).
"""
