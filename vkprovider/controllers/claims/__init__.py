"""The claims of a worker: `store` writes those of a worker that is ours in batches, `reader` reads everyone's."""
