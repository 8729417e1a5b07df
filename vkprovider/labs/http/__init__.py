"""The HTTP page of a replica: received session events, downloads, logins, agents, administration.

* `cloudevents`: CloudEvents 1.0 over HTTP, and the session events in them. Pure.
* `events`: the receiver of CloudEvents: authentication, limits, answers.
* `refusals`: the kinds of refusals, each a class.
* `rights`: what a user must have the right to.
* `downloads`: a lab as a file. `logins`: the login URL of its session. `archives`: what learners left.
* `agents`: agents beside workers dial in; who may bear which name.
* `admin`: counters, and an immediate pass.

Nothing here decides: events go to an inbox, requests to the controllers. `app` mounts the handlers on one page.
"""
