"""Transports: how an HTTP request reaches a server and its response comes back.

A library that knows neither CML nor Kubernetes. `base.Transport` is the contract, `direct.DirectTransport`
its form over a plain connection, `allowlist.AllowList` the requests that it lets pass, `errors` what it raises.
"""
