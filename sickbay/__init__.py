"""Sickbay: detect, decide, repair, validate and return sick nodes of GPU training clusters."""

__version__ = "0.1.0"
