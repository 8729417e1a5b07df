"""The lab of one Pod, step by step.

* `facts`: what is known of a lablet, and the form of a decision; `memory`: what a replica remembers of it.
* `decisions`: the next step, from the facts.
* `boots`: how long its devices may take to boot, and since when each is on its way.
* `steps`: the steps with their operands; `outcomes`: what they yield, well or badly done.
* `after`: what decisions, and steps well or badly done, leave behind in memory and claim; `notices`: their Events.
* `pod`: what the Pod asks for; `status`: the Pod's status, rendered and as a patch; `restarts`: what it counts.
* `environment`: the variables of its containers, which are the parameters of its topology.
* `story`: its Events and conditions as lines of a log.
* `archive`: what a learner leaves behind, kept beyond the Pod.
* `description`: the learner, for people who look at CML's own page.
* `identity`: a lab's notes; `matching`: which lab is a claim's, and no copy of it; `recovered`: claims that were lost,
  rebuilt from the labs.
* `exposing`: which of its ports are lent to a mux.
* `lifecycle`: the states of a lablet and the transitions between them.
"""
