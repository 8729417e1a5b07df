"""The HTTP page of a replica: received session events, downloads, logins, agents, administration.

* `cloudevents`: cloudEvents 1.0 over HTTP: structured, binary and batched content, and the session event in one.
* `events`: the CloudEvents receiver: `POST /events`.
* `refusals`: what the page asks for and answers: rights on lablets, which are no resource, and kinds of refusals.
* `lablets`: a lab as a file, and the login URL of a lablet's session, for those who may.
* `archives`: `GET /namespaces/{namespace}/archives` and `…/archives/{id}`: what learners of a namespace left, and their
  grades; `GET /archives`: what a user has saved.
* `agents`: `GET /tunnel`: agents beside workers dial in; who may bear which name.
* `admin`: `/admin/*` and `/info`: administration of one replica.

Nothing here decides: events go to an inbox, requests to the controllers. `app` mounts the handlers on one page.
"""
