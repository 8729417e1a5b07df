"""A view of the site: changes that reach open pages by themselves, without a request to the API server.

A *topic* is a thing that pages show: `lab:alice`, `lablet:net101/pod-1`, `class:net101`. Views describe their topics.
Each is rendered once for a change, however many look, and each stream gets the elements that differ from those it has.

* `topics`: which topics are looked at, and their renderings: one for a change, however many look, and what differs
  between two.
* `streams`: the open streams of a replica, each with all that its browser shows, and all that lets pages change by
  themselves.
"""
