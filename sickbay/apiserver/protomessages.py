"""Field numbers of the messages that Go clients send, from the generated.proto files of k8s.io/api v0.36.

Each line is a message: `number:name:type`. Types: `str`, `int`, `bool`, `bytes` (base64 in JSON), `time`, `micro`,
`intstr`, or another message; `[x]` a list, `{x}` a map with text keys. A `!` keeps zero, false and "": such a field
is a pointer in Go, and zero is something its sender says.
"""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    name: str
    type: str
    keep_empty: bool = False


_TEXT = """\
ObjectMeta 1:name:str 2:generateName:str 3:namespace:str 5:uid:str 6:resourceVersion:str 11:labels:{str} \
 12:annotations:{str} 13:ownerReferences:[OwnerReference] 14:finalizers:[str]
OwnerReference 1:kind:str 3:name:str 4:uid:str 5:apiVersion:str 6:controller:bool! 7:blockOwnerDeletion:bool!
DeleteOptions 1:gracePeriodSeconds:int! 2:preconditions:Preconditions 3:orphanDependents:bool! \
 4:propagationPolicy:str 5:dryRun:[str]
Preconditions 1:uid:str 2:resourceVersion:str
LabelSelector 1:matchLabels:{str} 2:matchExpressions:[LabelSelectorRequirement]
LabelSelectorRequirement 1:key:str 2:operator:str 3:values:[str]
ObjectReference 1:kind:str 2:namespace:str 3:name:str 4:uid:str 5:apiVersion:str 6:resourceVersion:str 7:fieldPath:str
LocalObjectReference 1:name:str
Namespace 1:metadata:ObjectMeta 2:spec:NamespaceSpec
NamespaceSpec 1:finalizers:[str]
ConfigMap 1:metadata:ObjectMeta 2:data:{str} 3:binaryData:{bytes} 4:immutable:bool!
Secret 1:metadata:ObjectMeta 2:data:{bytes} 3:type:str 4:stringData:{str} 5:immutable:bool!
ServiceAccount 1:metadata:ObjectMeta 2:secrets:[ObjectReference] 3:imagePullSecrets:[LocalObjectReference] \
 4:automountServiceAccountToken:bool!
Binding 1:metadata:ObjectMeta 2:target:ObjectReference
Event 1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason:str 4:message:str 5:source:EventSource \
 6:firstTimestamp:time 7:lastTimestamp:time 8:count:int 9:type:str 10:eventTime:micro 11:series:EventSeries \
 12:action:str 13:related:ObjectReference 14:reportingComponent:str 15:reportingInstance:str
EventSource 1:component:str 2:host:str
EventSeries 1:count:int 2:lastObservedTime:micro
Eviction 1:metadata:ObjectMeta 2:deleteOptions:DeleteOptions
PodDisruptionBudget 1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec
PodDisruptionBudgetSpec 1:minAvailable:intstr 2:selector:LabelSelector 3:maxUnavailable:intstr \
 4:unhealthyPodEvictionPolicy:str
PriorityClass 1:metadata:ObjectMeta 2:value:int! 3:globalDefault:bool 4:description:str 5:preemptionPolicy:str
Lease 1:metadata:ObjectMeta 2:spec:LeaseSpec
LeaseSpec 1:holderIdentity:str! 2:leaseDurationSeconds:int! 3:acquireTime:micro 4:renewTime:micro \
 5:leaseTransitions:int!
Role 1:metadata:ObjectMeta 2:rules:[PolicyRule]
ClusterRole 1:metadata:ObjectMeta 2:rules:[PolicyRule] 3:aggregationRule:AggregationRule
PolicyRule 1:verbs:[str] 2:apiGroups:[str] 3:resources:[str] 4:resourceNames:[str] 5:nonResourceURLs:[str]
AggregationRule 1:clusterRoleSelectors:[LabelSelector]
RoleBinding 1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef
ClusterRoleBinding 1:metadata:ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef
RoleRef 1:apiGroup:str 2:kind:str 3:name:str
Subject 1:kind:str 2:apiGroup:str 3:name:str 4:namespace:str
SelfSubjectAccessReview 1:metadata:ObjectMeta 2:spec:AccessSpec
SubjectAccessReview 1:metadata:ObjectMeta 2:spec:AccessSpec
AccessSpec 1:resourceAttributes:ResourceAttributes 2:nonResourceAttributes:NonResourceAttributes 3:user:str \
 4:groups:[str]
ResourceAttributes 1:namespace:str 2:verb:str 3:group:str 4:version:str 5:resource:str 6:subresource:str 7:name:str
NonResourceAttributes 1:path:str 2:verb:str
SelfSubjectRulesReview 1:metadata:ObjectMeta 2:spec:RulesSpec
RulesSpec 1:namespace:str
SelfSubjectReview 1:metadata:ObjectMeta
TokenRequest 1:metadata:ObjectMeta 2:spec:TokenRequestSpec
TokenRequestSpec 1:audiences:[str] 3:boundObjectRef:BoundObjectReference 4:expirationSeconds:int!
BoundObjectReference 1:kind:str 2:apiVersion:str 3:name:str 4:uid:str
"""


def _fields(words: list[str]) -> dict[int, Field]:
    found = {}
    for word in words:
        number, name, kind = word.split(":")
        found[int(number)] = Field(name, kind.removesuffix("!"), kind.endswith("!"))
    return found


MESSAGES: dict[str, dict[int, Field]] = {
    line.split()[0]: _fields(line.split()[1:]) for line in _TEXT.replace("\\\n", " ").splitlines() if line.strip()
}
"""Fields by number, by message."""

_OTHER_NUMBERS = ("events.k8s.io/v1", "Event")
"""A message that shares its name with one above and has other field numbers."""


def known(api_version: str, kind: str) -> bool:
    return kind in MESSAGES and (api_version, kind) != _OTHER_NUMBERS
