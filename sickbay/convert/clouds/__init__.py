"""The clouds: one file each with its table of words and what decodes its payloads (sources in docs/convert.md)."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.convert.clouds import alibaba_ecs, alibaba_lingjun, aws, azure, gcp, oci
from sickbay.convert.notice import Notice
from sickbay.convert.payload import decode
from sickbay.convert.vocabulary import Vocabulary

VOCABULARIES = {
    module.VOCABULARY.source: module.VOCABULARY for module in (alibaba_ecs, alibaba_lingjun, aws, azure, gcp, oci)
}


PUSHED: dict[str, Callable[[bytes], list[Notice]]] = {
    alibaba_ecs.SOURCE: alibaba_ecs.pushed,
    alibaba_lingjun.SOURCE: alibaba_lingjun.nodes,
    aws.SOURCE: aws.health,
    azure.SOURCE: azure.scheduled_events,
    gcp.SOURCE: lambda body: gcp.upcoming(decode(body)),
    oci.SOURCE: oci.maintenance_events,
}
"""What somebody may hand over by HTTP, by source: CloudMonitor's messages, a page of ListClusterNodes, AWS Health by
EventBridge, the metadata service's scheduled events, an instance as GCP's API shows it, a list of OCI's maintenance
events. All raise Undecodable."""


def vocabulary(source: str) -> Vocabulary:
    """The table of a source; of one that nobody knows only the words that cannot be mistaken."""
    return VOCABULARIES.get(source) or Vocabulary(source)
