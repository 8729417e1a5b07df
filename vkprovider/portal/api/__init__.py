"""The REST API of the portal: the routes by which a user has a lab, and a hub or an instructor looks after labs.

* `callers`: who asks, and whether they may: a user of the cluster, by a token or by the headers of an ingress that
  proves itself.
* `looks`: an admin's look as a user: the headers by which Kubernetes lets one user act as another, judged by the API
  server.
* `bodies`: what the API answers: labs in its two dialects, the form, the description of the routes, refusals.
* `streams`: streams of the events of labs, as long as an operation goes on and the listener may follow it.
* `routes`: the paths of the API, made of all that serves them.
"""
