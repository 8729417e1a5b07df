"""One client for JSON services over HTTP: CML, the LDS, the grader, and what the doctor asks of workers.

* `operations`: requests as data: what a service offers (`Operation`), and one use of it (`OperationRequest`).
* `dialect`: what answers and the transport's errors mean, in the error tree of `vkprovider.platform.errors`.
* `exchange`: one request and its answer: base path, headers, deadline; how long it took, and what time it is on the
  server.
* `tokens`: bearer tokens: fixed by a setting or a file, or got by a login that all requests share.
* `client`: the client of a service: a token, a deadline and, where it is safe, retries with back-off.
"""
