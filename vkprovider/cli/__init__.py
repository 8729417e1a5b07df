"""Commands. A command parses its arguments, calls one function below and prints; it decides nothing."""
