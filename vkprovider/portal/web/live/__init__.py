"""A view of the site: changes that reach open pages by themselves, without a request to the API server.

A *topic* is a thing that pages show: `lab:alice`, `lablet:net101/pod-1`, `class:net101`. Views describe their topics.
Each is rendered once for a change, however many look, and each stream gets the elements that differ from those it has.

* `rendered`: what a topic looks like, and what differs; `frames`: that as events of a stream.
* `topics`: which topics are looked at, and their renderings; `merging`: waits for news of several kinds.
* `reviews`: asks every minute whether somebody still may; `sessions`: ends what is open of a session with it.
* `streams`: the open streams; `wanted`: what a page asks for.
* `parts`: all these; `routes`: the path.
* `timeleft`: the time that is left, in words.
* `static`: `live.js`, one stream for each browser; `swap.js`, what it changes in the pages.
"""
