"""The API server's own parts. What it answers is held to the real one by `tests/conformance`."""
