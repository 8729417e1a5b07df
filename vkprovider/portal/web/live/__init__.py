"""A view of the site: changes that reach open pages by themselves, without a request to the API server.

A *topic* is a thing that pages show: `lab:alice`, `lablet:net101/pod-1`, `class:net101`. Views describe their topics.
Each is rendered once for a change, however many look, and each stream gets the elements that differ from those it has.

* `rendered`: what a topic looks like, what differs between two renderings, and changes as events of a stream.
* `topics`: which topics are looked at, and their renderings: one for a change, however many look.
* `streams`: the open streams of a replica, each with all that its browser shows, and all that lets pages change by
  themselves.
* `reviews`: whether somebody still may: asked once a minute; and what is open of a session that has ended.
"""
