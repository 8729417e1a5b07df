"""The debug page of muxes: what a replica knows of them. It changes nothing.

* `callers`: who asks, by password or by a token of the cluster, and which muxes they may see.
* `views`: what is shown, as data; `html`: the same as a page for people.
* `probe`: whether a backend of a mux accepts connections.
* `routes`: the paths, with security headers and a log of requests.
"""
