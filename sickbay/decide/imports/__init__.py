"""Turning other systems' settings into rules and pools. Pure: documents in, manifests and remarks out."""
