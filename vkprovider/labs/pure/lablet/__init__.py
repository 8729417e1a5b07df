"""The lab of one Pod, step by step.

* `facts`: facts about one lablet, and the form of a decision.
* `memory`: what a replica remembers of one lablet.
* `decisions`: what to do next with one lablet, and what to report meanwhile: from facts to one step.
* `boots`: how long the devices of a lab may take to boot, and since when each is on its way.
* `devicework`: one device of a lab that runs: stopped, wiped or started on request, while all others go on.
* `steps`: the steps of a lablet, one side effect each, with their operands.
* `outcomes`: what a step yields: an outcome if it went well, a failure if not; and where and when that was.
* `after`: what decisions and steps leave behind in memory and claim, and which Events they call for.
* `notices`: events about a lablet: which ones a step, a decision or a change of the Pod calls for.
* `status`: a report as a Pod's status, and the patch that yields it.
* `environment`: the environment variables of a lablet's containers, resolved as a kubelet resolves them.
* `identity`: whose lab it is, by its notes and description, and which lab is the one of a claim that names none.
* `recovered`: the claims of a worker whose ConfigMap was lost, rebuilt from its marked labs.
* `exposing`: which ports of a lablet are lent to a mux: what its definition asks for, and what stands in the cluster.
* `intent`: what a Pod asks for: a version of a definition; and which lablet of a warm pool takes up new content.
* `leftovers`: what a learner leaves behind, kept beyond the lab, and how much of it is kept.
"""
