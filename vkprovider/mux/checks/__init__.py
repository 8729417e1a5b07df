"""Checks of muxes.

* `services`: of the Services of muxes, and of what lends them ports.
* `relays`: of the relays that carry the ports of muxes.
* `programs`: the workloads of programs, with their settings.
* `reading`: reads all of it.
"""
