"""The debug page of muxes: what a replica knows of them. It changes nothing.

* `routes`: the paths of the debug page, who asks, and whether a backend accepts connections.
* `views`: what the debug page shows, as data and as plain HTML: only of muxes that the caller may see.
"""
