"""The HTTP shell that both simulators share.

* `simulator`, `listener`: start and stop a simulator on an address; `tls`: its certificate.
* `gate`: what every request passes first; `faults`, `patterns`: injected failures and the requests they match.
* `access_log`: every request, one JSON line each; `orders`: orders of tests at run time, under `/sim`.
* `store`: the file that keeps a simulator's state over a restart.
"""
