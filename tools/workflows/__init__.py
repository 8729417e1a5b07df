"""What judges the workflows in `.github`, and the script that they run.

* `check`: what they name is there; and actionlint, which is built once from the Go module that go.mod and go.sum pin,
  finds nothing.
"""
