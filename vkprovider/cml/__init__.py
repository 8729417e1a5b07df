"""The CML shell: what the controllers ask of a CML worker, over any transport.

`spi.Labs` is the seam that the controllers use; `factory.open_labs` opens it by URL: `worker.CmlLabs` for a CML
controller, `null.NullLabs` for the null backend. `CmlLabs` joins the clients of `labs`, `nodes` and `interfaces` over
one `rest.client.ServiceClient`; `consoles` opens streams beside it. `operations` names every request that may leave,
`dialect` says what CML's answers mean, `wire` has their shapes. `stats` alone asks the system
API, and `images` for image definitions.
"""
