"""The clouds: one file each with its table of words and what decodes its payloads (sources in docs/convert.md)."""

from __future__ import annotations

from sickbay.convert.clouds import alibaba_ecs, alibaba_lingjun, aws, azure, gcp, oci
from sickbay.convert.vocabulary import Vocabulary

VOCABULARIES = {
    module.VOCABULARY.source: module.VOCABULARY for module in (alibaba_ecs, alibaba_lingjun, aws, azure, gcp, oci)
}


def vocabulary(source: str) -> Vocabulary:
    """The table of a source; of one that nobody knows only the words that cannot be mistaken."""
    return VOCABULARIES.get(source) or Vocabulary(source)
