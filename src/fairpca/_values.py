"""Conversion of values to JSON and arrays, and back; only the kinds listed here can be restored from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

#: Parameters that are code rather than part of the model.
NOT_SAVED = frozenset({"callback", "n_jobs"})


class Packer:
    """Converts values to JSON; arrays are kept apart under numbered keys."""

    def __init__(self, records: Mapping[str, type]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._records = records

    def parameters(self, estimator: Any) -> dict[str, Any]:
        values = estimator.get_params(deep=False)
        return {name: self.pack(value, name) for name, value in values.items() if name not in NOT_SAVED}

    def pack(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, int | float) or (isinstance(value, np.generic) and value.dtype.kind in "iuf"):
            return {"number": value.item() if isinstance(value, np.generic) else value}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.pack(part, name) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(key, name), self.pack(part, name)] for key, part in value.items()]}
        if type(value) in self._records.values():
            parts = {field.name: self.pack(getattr(value, field.name), name) for field in dataclasses.fields(value)}
            return {"record": type(value).__name__, "fields": parts}
        raise TypeError(
            f"{name} holds a {type(value).__name__}, which cannot be saved; use plain numbers, text and arrays (an "
            "integer for random_state)."
        )

    def _array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        if array.dtype == object:
            return {"objects": [self.pack(part, name) for part in array.ravel().tolist()], "shape": list(array.shape)}
        if array.dtype.kind not in "biufU":
            raise TypeError(f"{name} holds an array of {array.dtype}, which cannot be saved.")
        key = f"a{len(self.arrays)}"
        self.arrays[key] = array
        return {"array": key}


class Unpacker:
    """The inverse of :class:`Packer`; an unknown tag is an error."""

    def __init__(self, arrays: dict[str, np.ndarray], records: Mapping[str, type]) -> None:
        self._arrays, self._records = arrays, records

    def unpack(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "number": self._number,
            "array": lambda entry: self._arrays.pop(entry["array"]),  # once only, so that copies cannot exhaust memory
            "list": lambda entry: [self.unpack(part) for part in entry["list"]],
            "tuple": lambda entry: tuple(self.unpack(part) for part in entry["tuple"]),
            "dict": lambda entry: {self.unpack(key): self.unpack(part) for key, part in entry["dict"]},
            "objects": self._objects,
            "record": self._record,
        }
        tag = next((kind for kind in kinds if isinstance(value, dict) and kind in value), None)
        if tag is None:
            raise ValueError("its header holds a value of unknown kind")
        return kinds[tag](value)

    def _number(self, entry: dict[str, Any]) -> int | float:
        value = entry["number"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("its header holds an invalid number")
        return value

    def _objects(self, entry: dict[str, Any]) -> np.ndarray:
        array = np.empty(len(entry["objects"]), dtype=object)
        for i, part in enumerate(entry["objects"]):
            array[i] = self.unpack(part)
        return array.reshape([int(size) for size in entry["shape"]])

    def _record(self, entry: dict[str, Any]) -> Any:
        record = self._records.get(entry["record"])
        if record is None:
            raise ValueError(f"its header names the unknown record type {entry['record']!r}")
        return record(**{name: self.unpack(part) for name, part in entry["fields"].items()})
