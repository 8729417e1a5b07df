"""The CML shell: what the controllers ask of a CML worker, over any transport.

`spi.Labs` is the seam the controllers use, `factory.open_labs` opens it by URL. Below it stand the clients for labs,
nodes and interfaces, which share one `session.CmlSession` per worker. `allow` names every path that may leave.
"""
