"""The objects of one kind as last known, with indexes. No I/O, no clock.

Three sources write into it: lists, watch events and the answers to our own writes, and they overtake each other. Two
rules keep the store from ever going back:

* An object is replaced only by a newer version of itself (or of its successor under the same name).
* `horizon` is the version up to which the history is known to be reflected. What is not in the store and is not newer
  than the horizon has been deleted meanwhile; a late answer must not bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sickbay.kube.objects import Key, key_of, uid_of, version_of

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]
"""The values under which an object is found; none at all is fine."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One difference: `old` None = appeared, `new` None = deleted."""

    old: T | None
    new: T | None


@dataclass(slots=True)
class Comparison(Generic[T]):
    """What a list changed in the store. `missed` of them a watch should have told us."""

    changes: list[Change[T]] = field(default_factory=list)
    missed: int = 0


class Store(Generic[T]):
    """See the module."""

    def __init__(self, indexes: Mapping[str, IndexFunction[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._functions}
        self.horizon = 0
        self.newest = 0
        """The highest version ever seen; of our own writes it may lie beyond the horizon."""

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get((namespace, name))

    def all(self) -> list[T]:
        """A snapshot, in the order in which the objects were first seen."""
        return list(self._objects.values())

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def by_index(self, index: str, value: str) -> list[T]:
        """The objects found under a value of an index. Raises KeyError for an index that was not declared."""
        found = self._indexes[index].get(value)
        return [self._objects[key] for key in found] if found else []

    def upsert(self, obj: T) -> Change[T] | None:
        """Take an object in unless what is known is as new. Returns what changed."""
        key = key_of(obj)
        old = self._objects.get(key)
        if not self._news(old, obj):
            return None
        self._put(key, old, obj)
        return Change(old, obj)

    def remove(self, key: Key, uid: str = "", version: int | None = None) -> Change[T] | None:
        """Take an object out, unless another object has that name by now or it was seen at a later version."""
        old = self._objects.get(key)
        if old is None or (uid and uid_of(old) and uid_of(old) != uid):
            return None
        known = version_of(old)
        if known is not None and version is not None and known > version:
            return None
        self._drop(key, old)
        return Change(old, None)

    def advance(self, version: int | None) -> None:
        """All changes up to this version are in the store now."""
        if version is not None:
            self.horizon = max(self.horizon, version)
            self.newest = max(self.newest, version)

    def replace(self, items: Iterable[T], version: int | None, keep: Iterable[Key] = ()) -> Comparison[T]:
        """Take in a complete list as of `version`. `keep` names objects that exist although they are not in `items`.

        A list from before the horizon (its answer was slow) takes nothing back and brings nothing back.
        """
        seen = self.horizon
        late = version is not None and version < seen
        comparison: Comparison[T] = Comparison()
        present = set(keep)
        for obj in items:
            key = key_of(obj)
            present.add(key)
            self._compare(key, obj, seen, late, comparison)
        caught_up = version is not None and version <= seen
        for key in [key for key in self._objects if key not in present]:
            old = self._objects[key]
            known = version_of(old)
            if known is not None and version is not None and known > version:
                continue  # made after the list was taken
            self._drop(key, old)
            comparison.changes.append(Change(old, None))
            comparison.missed += caught_up
        self.advance(version)
        return comparison

    def contradicts(self, items: Iterable[T], version: int | None) -> bool:
        """Whether a list denies what was seen: an object at an earlier version than the one we know, or another at the
        same. In one history that cannot be; the server was restored from a backup and has counted up again since.
        """
        for obj in items:
            old = self._objects.get(key_of(obj))
            known, incoming = version_of(old) if old is not None else None, version_of(obj)
            if known is None or incoming is None or version is None or known > version:
                continue
            if known > incoming or (known == incoming and old != obj):
                return True
        return False

    def reset(self, items: Iterable[T], version: int | None, keep: Iterable[Key] = ()) -> Comparison[T]:
        """Take a list as the whole truth, also where it is older: the server's history has been rewound."""
        comparison: Comparison[T] = Comparison()
        present = set(keep)
        self.newest = 0
        for obj in items:
            key = key_of(obj)
            present.add(key)
            old = self._objects.get(key)
            if old != obj:
                self._put(key, old, obj)
                comparison.changes.append(Change(old, obj))
        for key in [key for key in self._objects if key not in present]:
            old = self._objects[key]
            self._drop(key, old)
            comparison.changes.append(Change(old, None))
        self.horizon = version or 0
        self.newest = max(self.newest, self.horizon)
        return comparison

    def _news(self, old: T | None, new: T) -> bool:
        incoming = version_of(new)
        if incoming is None:
            return old != new
        if old is None:
            return incoming > self.horizon
        known = version_of(old)
        return known is None or incoming > known

    def _compare(self, key: Key, obj: T, seen: int, late: bool, comparison: Comparison[T]) -> None:
        old = self._objects.get(key)
        incoming = version_of(obj)
        told = incoming is not None and incoming <= seen
        if old is None and told and late:
            return  # deleted after the list was taken
        if old is not None and not self._news(old, obj):
            return
        self._put(key, old, obj)
        comparison.changes.append(Change(old, obj))
        comparison.missed += told

    def _put(self, key: Key, old: T | None, new: T) -> None:
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = new
        self.newest = max(self.newest, version_of(new) or 0)
        for name, function in self._functions.items():
            for value in function(new):
                self._indexes[name].setdefault(value, {})[key] = None

    def _drop(self, key: Key, old: T) -> None:
        self._unindex(key, old)
        del self._objects[key]

    def _unindex(self, key: Key, old: T) -> None:
        for name, function in self._functions.items():
            for value in function(old):
                found = self._indexes[name].get(value)
                if found is None:
                    continue
                found.pop(key, None)
                if not found:
                    del self._indexes[name][value]
