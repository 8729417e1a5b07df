"""The learner's pages: `html` renders them, `pages` serves them."""
