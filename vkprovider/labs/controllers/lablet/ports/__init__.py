"""The ports of lablets outside of their claims.

* `check`: whether console ports open; `twins`: ports of labs that another CMLWorker of the same controller has.
* `slices`: the EndpointSlices by which lablets lend their ports to muxes.
"""
