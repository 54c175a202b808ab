"""A GPU node as clusters have them, 12 KB of JSON, and a server in memory that lists and watches thousands of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

TYPES = (
    *("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "DetectionBlind"),
    *(f"NvidiaXID{code}Error" for code in (13, 31, 48, 74, 79, 94)),
)


def gpu_node(number: int, version: int) -> dict[str, Any]:
    """28 labels, 12 conditions, 17 images, 4 managedFields entries; names, addresses and ids of its own."""
    name = f"gpu-{number:05}.cluster.example.com"
    labels = {f"feature.node.kubernetes.io/pci-{i:02}.present": "true" for i in range(20)}
    labels |= {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "pool": "train",
        "rack": f"rack-{number // 32}",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "beta.kubernetes.io/os": "linux",
    }
    heard = f"2027-03-01T08:{number % 60:02}:{version % 60:02}Z"
    conditions = [
        {
            "type": type_,
            "status": "True" if type_ == "Ready" else "False",
            "reason": f"{type_}IsAsItShould",
            "message": f"{type_} was looked at and found to be as it should be on this machine",
            "lastHeartbeatTime": heard,
            "lastTransitionTime": f"2027-02-{1 + number % 28:02}T04:05:06Z",
        }
        for type_ in TYPES
    ]
    fields = {f"f:{label}": {} for label in labels} | {f'k:{{"type":"{t}"}}': {".": {}, "f:status": {}} for t in TYPES}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "creationTimestamp": "2027-01-01T00:00:00Z",
            "labels": labels,
            "annotations": {"csi.volume.kubernetes.io/nodeid": f'{{"csi.example.com":"i-{number:017x}"}}'},
            "managedFields": [
                {"manager": f"m{i}", "operation": "Update", "time": heard, "fieldsV1": {"f:metadata": fields}}
                for i in range(2)
            ]
            + [{"manager": f"n{i}", "operation": "Update", "time": heard, "fieldsV1": {}} for i in range(2)],
        },
        "spec": {"providerID": f"aws:///zone/i-{number:017x}", "podCIDR": f"10.{number >> 8}.{number & 255}.0/24"},
        "status": {
            "capacity": {"cpu": "192", "memory": "2097152Mi", "nvidia.com/gpu": "8", "pods": "110"},
            "allocatable": {"cpu": "190", "memory": "2090000Mi", "nvidia.com/gpu": "8", "pods": "110"},
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": f"10.1.{number >> 8}.{number & 255}"}],
            "nodeInfo": {
                "bootID": f"10000000-0000-4000-8000-{number:012}",
                "machineID": f"{number:032x}",
                "systemUUID": f"20000000-0000-4000-8000-{number:012}",
                "kernelVersion": "6.8.0-1021-aws",
                "kubeletVersion": "v1.36.3",
                "containerRuntimeVersion": "containerd://2.1.4",
                "osImage": "Ubuntu 24.04.3 LTS",
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeProxyVersion": "",
            },
            "images": [
                {"names": [f"registry.example.com/t/image-{i}@sha256:{i:064}"], "sizeBytes": 10**9 + i}
                for i in range(17)
            ],
        },
    }


def encode(number: int, version: int) -> bytes:
    return json.dumps(gpu_node(number, version), separators=(",", ":")).encode()


class Pages(httpx2.AsyncBaseTransport):
    """Serves LIST of `count` nodes in pages made beforehand, and WATCH as the pieces given."""

    def __init__(self, count: int, page: int = 500, pieces: list[bytes] | None = None) -> None:
        self.pieces = pieces or []
        self.size = 0
        self._bodies: list[bytes] = []
        for start in range(0, count, page):
            items = b",".join(encode(n, n + 1) for n in range(start, min(count, start + page)))
            token = str(len(self._bodies) + 1) if start + page < count else ""
            head = (
                f'{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"{count}","continue":"{token}"}}'
            )
            self._bodies.append(head.encode() + b',"items":[' + items + b"]}")
            self.size += len(self._bodies[-1])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        query = request.url.params
        headers = {"content-type": "application/json"}
        if "watch" in query:
            return httpx2.Response(200, headers=headers, stream=_Pieces(self.pieces), request=request)
        body = self._bodies[int(query.get("continue") or 0)]
        return httpx2.Response(200, headers=headers, content=body, request=request)


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def resident() -> int:
    """Bytes of this process in memory (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
