"""User labs: one lablet for one user, at the request of that user.

* `portalnames`: words of user labs on the wire: labels and annotations, names of objects for any user, and reasons.
* `config`: what the portal offers and whom: the file `VKPROVIDER_PORTAL_CONFIG`, and quotas.
* `view`: a lab as its learner sees it: how it stands, what goes on, its devices, its end, and what is wrong.
* `plainwords`: what a learner reads where others read reasons: one sentence, and whom to ask.
* `classes`: a class as its instructor sees it: rows, sorted, filtered and counted, and what is asked of many.
* `grades`: the grades of a class: of lablets that have ended and are still there, and of what learners of before have
  left.
* `given`: which lablets of classes are somebody's.
* `record`: the record of a user lab: its Namespace, whose labels and annotations say whose it is and what was asked
  for.
* `facts`: a user lab as it was found, its state in the words of the interface, and the end of its time.
* `decide`: the next step of a user lab, each of which may be repeated: from what is known and the time.
* `options`: what a user asks for, the body of a request; and why it is refused.
* `menu`: the menu: which labs users may ask for, from the definitions; their versions, ordered and named.
* `environment`: the environment of a user lab: which variables its Pod has, and which of them are secret.
* `posix`: the user of an operating system that somebody is: uid, gid and groups, as the API server says them of a
  token.
* `stream`: the story of an operation of a user lab as lines, and a listener's position in it.
* `form`: the form of a user: images and sizes that may be chosen, and which workers have them already.
* `picture`: the picture of a lab: where its devices stand and which lines join them.
* `leading`: what the replica that leads decides: how many warm labs there are, and who instructs in the lab of a class.
* `workbench`: workbenches as an admin describes them, and which lab has which one.
* `identity`: the user of a workbench for Linux: which numbers it may have, and the files passwd and group.
* `benchpod`: the Pod of a workbench: on ordinary nodes, as restricted as Pod Security may demand, with all limits.
* `benchhost`: the origin of a workbench: whom its cookie lets in, which requests are its pages', what headers pass.
* `nodeimages`: images on ordinary Nodes: their names, which Nodes hold one, and where that of a workbench is there.
* `benchnet`: the NetworkPolicy of a workbench: who reaches it, and where it connects to; never to a worker.
"""
