"""Conversion of values to JSON and arrays, and back; only the kinds listed here can be restored from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float):
            return {"number": value}
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
        match value:
            case None | bool() | str():
                return value
            case {"number": int() | float() as number} if not isinstance(number, bool):
                return number
            case {"array": key}:
                return self._arrays.pop(key)  # once only, so that copies cannot exhaust memory
            case {"list": parts}:
                return [self.unpack(part) for part in parts]
            case {"tuple": parts}:
                return tuple(self.unpack(part) for part in parts)
            case {"dict": items}:
                return {self.unpack(key): self.unpack(part) for key, part in items}
            case {"objects": parts, "shape": shape}:
                array = np.empty(len(parts), dtype=object)
                for i, part in enumerate(parts):
                    array[i] = self.unpack(part)
                return array.reshape([int(size) for size in shape])
            case {"record": name, "fields": fields}:
                if name not in self._records:
                    raise ValueError(f"its header names the unknown record type {name!r}")
                return self._records[name](**{key: self.unpack(part) for key, part in fields.items()})
        raise ValueError("its header holds a value of unknown kind")
