"""The HTTP page of a replica: received session events, downloads, logins, agents, administration.

* `cloudevents`: CloudEvents 1.0 over HTTP, and the session events in them. Pure.
* `events`: the receiver of CloudEvents: authentication, limits, answers.
* `access`: authentication and authorization by the cluster: TokenReview, SubjectAccessReview.
* `downloads`: a lab as a file. `logins`: the login URL of its session.
* `agents`: agents beside workers dial in; who may bear which name.
* `admin`: counters, and an immediate pass.
* `connections`: limits on connections and heads of requests.
* `answers`: refusals with reason and remedy.
* `tls`: a certificate that can be renewed while the page is served; `selfsigned`: one that the replica makes itself.

Nothing here decides: events go to an inbox, requests to the controllers. `app` mounts the handlers on one page.
"""
