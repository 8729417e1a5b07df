"""Transports: how an HTTP request reaches a server and its response comes back.

A library of its own: it knows neither CML nor Kubernetes. `base.Transport` is the contract, `direct.DirectTransport`
its form over a plain connection, `allowlist.AllowList` what a transport lets pass, `errors` what it raises.
"""
