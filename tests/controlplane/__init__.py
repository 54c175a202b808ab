"""The Go module of the real control plane, and what builds it."""
