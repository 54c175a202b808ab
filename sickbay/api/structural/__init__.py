"""Structural OpenAPI v3 schemas as the API server applies them to custom resources.

The order of a write is the server's: `prune` drops what the schema does not know, `default` fills in what is missing
(and drops nulls), `validate` judges values, list keys and CEL rules. The functions know nothing of our kinds: our API
server uses them for any CustomResourceDefinition, and `sickbay.api.validate` for manifests offline.

None of them changes its argument. Schemas are plain dicts, the `openAPIV3Schema` of a CRD version.
"""

from sickbay.api.structural.shape import Unknown, default, prune, unknown_fields
from sickbay.api.structural.values import validate
from sickbay.api.structural.violation import Violation

__all__ = ["Unknown", "Violation", "default", "prune", "unknown_fields", "validate"]
