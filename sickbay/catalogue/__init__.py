"""Data, no code: what is known about faults, as YAML and tab-separated tables with the source of every entry."""
