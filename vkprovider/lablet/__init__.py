"""What anyone but the provider may know of a lablet: pure data and functions that every program may import.

* `names`: names on the wire: labels, annotations, taints, conditions, and how names are derived.
* `reasons`: reasons of lablets, workers and definitions: what each means, and what to do about it.
* `models`: the custom resources, field by field: what an admin writes, and what the provider answers.
* `slimming`: what is kept in memory of objects that tenants write.
* `inputs`: the annotations by which users direct a lablet, its image, and what an instructor tells its learner.
* `guests`: the guests of a lablet: who shares it with its learner, to watch or to type.
* `deviceacts`: what may be asked of one device of a lab that runs, and the annotation that holds the requests.
* `captures`: a capture of a link as it is asked for, and the words of `exec` that ask for it.
* `shownname`: the name by which people know a learner, beside the user: how it is read, shown and sorted.
* `standing`: how a lablet stands: its states and which may follow which, and in plain words.
* `podspec`: the containers of a lablet that a program makes.
* `story`: the story of a lablet as lines of a log: what its Events and conditions say, with times.
* `standings`: the plain words for how a lablet stands, in the order in which a summary counts them.
* `ports`: a lablet's ports: the grammar of port tags, the template of a topology, and where each port leads.
* `devices`: the devices of a lablet with their states, and the ports, as its Pod reports them.
* `exposure`: the EndpointSlice by which a lablet lends ports to a mux, and the annotation by which the mux answers.
* `archives`: what a learner leaves behind, as it is kept and shown: the work, an entry of the list, the grade.
* `observations`: what is observed of a worker, in CML's own words: its labs, and what it has and uses.
"""
