"""Repair back-ends: one small protocol (`base`), one file for each back-end."""
