"""The objects Sickbay reads and writes, their names and their rules. Knows nothing else of the product.

One file per own kind, `core` for the slim Kubernetes kinds, `kinds` for where each lives on the API server, `names` for
every label, annotation, condition and reason, `words` for every enumeration.
"""
