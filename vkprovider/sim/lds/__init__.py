"""A simulator of the Lab Delivery System (LDS): sessions, a page for learners, events, and a grader.

The LDS publishes no protocol; what is assumed stands in `vkprovider/lds/openapi.yaml`, and the tests hold every answer
against it. As the simulator judges vkprovider's client, it imports nothing of it.

* Pure, time comes in as an argument: `states` (which state allows what), `errors` (the table of refusals), `model`,
  `settings`, `world` (sessions in time), `views` (their JSON), `cloudevents` (events on the wire), `eventfaults`
  (which of them go astray), `grading` (verdicts by rule).
* Handlers, pure too, as they see only a `calls.Call`: `routes`. `html` draws the learner's pages.
* The shell: `server`, `endpoint` (token, handler, answer), `pages` (the learner's way), `sender` (delivers events),
  `admin` (what tests do at run time, under `/sim`).

The way in is `async with LdsSimulator(LdsSettings()) as sim: sim.url`, of `server` and `settings`.
"""
