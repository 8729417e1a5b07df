"""Consoles of several learners at once, in one terminal: `kubectl lablet console --watch -u alice -u bob r1`.

Lines with the learner before them, as of `docker compose logs`: they need no size of the terminal, scroll back, and go
through a pipe, where tiles would leave each of 24 learners a few cells.

* `lines`: what a console sends, as lines of plain text; pure. `watching`: the consoles, each a kubectl without input.
"""
