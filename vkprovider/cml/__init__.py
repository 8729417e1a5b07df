"""The CML shell: what the controllers ask of a CML worker, over any transport.

* `spi`: the seam between the controllers and a CML worker.
* `factory`: opens a worker by its URL: `https://` and `http://` a CML controller, `null://name` the null backend.
* `worker`: `CmlLabs`, the `Labs` of a CML worker: life cycle of labs, their devices, and how their consoles are
  reached.
* `null`: the null backend: labs in a dict, every operation done when it returns.
* `consoles`: consoles, screens and ports of devices, and what devices use: bound to one session and its way to CML's
  host.
* `captures`: packets of links.
* `operations`: the only requests that may leave for a CML worker, with their timeouts.
* `dialect`: what CML's answers mean, in the error tree of `vkprovider.platform.errors`.
* `wire`: CML's answers as slim frozen structs: the fields we use, everything else is skipped while decoding.
* `stats`: figures of a worker: load, licences, node and image definitions.
"""
