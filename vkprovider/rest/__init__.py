"""One client for JSON services over HTTP: CML, the LDS, the grader, and what the doctor asks of workers.

* `operations`: the requests that a service offers; its allow-list is made from the same table.
* `dialect`: what a service's answers mean, in the error tree of `platform.errors`. `errors`: what that tree lacks.
* `exchange`: one request and its answer over a `Transport`, counted in `calls`; `clock`: the server's, by its answers.
* `tokens`: bearer tokens: read again for each request, or from a login that concurrent requests share.
* `client`: all of it: token, deadline, retry with back-off, decoding.
"""
