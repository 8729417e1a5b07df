"""Checks of muxes.

* `services`: of the Services of muxes to which definitions lend ports of lablets.
* `relays`: of the relays that carry the ports of muxes.
"""
