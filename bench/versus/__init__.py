"""KWOK and ours, in turns on one control plane.

* `pods`: a Deployment up and down; `idle`: nodes to which nothing happens.
* `kwok`: build, configure and run the rival; `least`: the least that a provider can do, as a measure of both.
* `served`: what the API server did; `chart`: time over pods.
"""
