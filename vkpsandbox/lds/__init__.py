"""A simulator of the Lab Delivery System (LDS): sessions, a page for learners, events, and a grader.

The LDS publishes no protocol; what is assumed stands in `vkprovider/lds/openapi.yaml`, and the tests hold every answer
against it. As the simulator judges vkprovider's client, it imports nothing of it.

* Pure, time comes in as an argument: `states` (which state allows what), `errors` (the table of refusals), `model`,
  `settings`, `world` (sessions in time), `views` (their JSON), `grading` (verdicts by rule).
* `events`: CloudEvents that the LDS sends; `pages`: what a learner sees.
* `calls`, `routes`: handlers, pure too. `server`, `endpoint`: the shell; `admin`: what tests do under `/sim`.

The way in is `async with LdsSimulator(LdsSettings()) as sim: sim.url`, of `server` and `settings`.
"""
