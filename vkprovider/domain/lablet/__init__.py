"""The lab of one Pod, step by step.

* `facts`: what is known of a lablet, and the form of a decision; `memory`: what a replica remembers of it.
* `decide`: the next step; `running`, `recovering`, `ending`, `delivering` decide while the lab runs, recovers and ends,
  and about its LDS session.
* `learner`: whose lablet it is.
* `steps`: the steps with their operands, and their outcomes.
* `after`: what decisions, and steps well or badly done, leave behind in memory and claim; `notices`: their Events.
* `intent`, `inputs`: what the Pod asks for: its containers, images and annotations.
* `identity`: a lab's notes; `recovered`: claims that were lost, rebuilt from the labs.
* `lifecycle`: the states of a lablet and the transitions between them.
* `status`: the Pod's status, rendered and as a patch.
* `stepfault`: what a failed step shows on the Pod; `keeping`, `leftovers`: what a learner leaves behind.
"""
