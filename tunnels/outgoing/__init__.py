"""What every HTTP client of ours shares: how a request leaves.

* `guard`: the request class that asks a guard in the step of the event loop in which the bytes leave.
* `sessions`: opens a session of aiohttp: guarded, without cookies, netrc or environment, and never silently sending a
  write a second time.
* `proxies`: which proxy a URL is reached through, decided from the environment as Go decides it.

It imports neither the rest of `tunnels` nor `vkprovider`: clients of the Kubernetes API stand on it as transports do.
"""
