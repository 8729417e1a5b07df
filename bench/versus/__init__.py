"""KWOK and ours, in turns on one control plane.

* `pods`: a Deployment up and down; `idle`: nodes to which nothing happens.
* `kwok`: build, configure and run the rival.
* `stages`: where our time goes; `served`: what the API server did; `chart`: time over pods.
"""
