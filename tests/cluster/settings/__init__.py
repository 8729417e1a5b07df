"""What a setting of the provider, or another program beside it, changes in a whole installation."""
