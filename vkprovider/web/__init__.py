"""What faces outwards over plain HTTP: events that come in, and what may be asked of a replica.

* `cloudevents`: CloudEvents 1.0 as they come over HTTP, and what they say of a session. Pure.
* `events`: the receiver: who may send, how much, and what is answered.
* `access`: who asks and whether the cluster lets them: TokenReview, SubjectAccessReview.
* `downloads`: a lab as a file. `logins`: the login URL of its session.
* `admin`: counters, and a pass now.
* `answers`: refusals that say what is wrong; `tls`: a certificate that is renewed while we serve.

Nothing here decides: events go to an inbox, questions to the controllers. `app` mounts it all on one page.
"""
