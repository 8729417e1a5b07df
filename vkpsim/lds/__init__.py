"""A simulator of the Lab Delivery System (LDS): sessions, a page for learners, events, and a grader.

The LDS publishes no protocol; `vkprovider/labs/lds/openapi.yaml` holds what is assumed, and tests check every answer
against it. As tests judge vkprovider's client by the simulator, it imports nothing of vkprovider.

* Pure, time comes in as an argument: `states` (which state allows what), `errors` (the table of refusals), `model`,
  `settings`, `world` (sessions in time), `views` (their JSON), `grading` (verdicts by rule).
* `events`: CloudEvents that the LDS sends; `pages`: what a learner sees.
* `calls`, `routes`: handlers, pure too. `server`, `endpoint`: the shell; `admin`: orders of tests under `/sim`.

Use it as `async with LdsSimulator(LdsSettings()) as sim: sim.url`, of `server` and `settings`.
"""
