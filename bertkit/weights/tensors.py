"""The tensors of a directory, whatever holds them: safetensors or pickles (read without running them), one or several.

Nothing is read before it is asked for, and no file can name one outside its directory.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from bertkit.errors import BertkitError
from bertkit.weights import int8

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
EXPORT = "export.json"
"""what a folder has that `bertkit export` made"""
_KINDS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_SHARING = 4
"""how often the numbers of a pickle may be used on average: tied tables are named twice"""
_AGAIN = "fetch the file again, or have its writer save it anew"


class Tensors:
    """Tensors by their foreign names, read one at a time as float32 copies."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self._files = files

    @classmethod
    def open(cls, directory: Path) -> Tensors:
        """The weights of a directory; safetensors before pickles, one file before several."""
        for name, kind in ((SAFE, _Safe), (PICKLED, _Pickled)):
            if (directory / name).is_file():
                file = kind(directory / name)
                return cls(dict.fromkeys(file.shapes, file))
            if (directory / (name + INDEX)).is_file():
                return cls(_shards(directory / (name + INDEX), kind))
        if (directory / EXPORT).is_file():
            raise BertkitError(f"{directory} is an export, without weights to learn on: bertkit.Exported.load opens it")
        raise BertkitError(f"{directory} has no weights ({SAFE} or {PICKLED}): {_holds(directory)}")

    @property
    def names(self) -> Iterable[str]:
        return [name for name in self._files if not self._is_scale(name)]

    def where(self, name: str) -> Path:
        """The file that holds a tensor."""
        return self._files[name].path

    def shape(self, name: str) -> tuple[int, ...]:
        return self._files[name].shapes[name]

    def read(self, name: str) -> Tensor:
        tensor = self._files[name].read(name)
        if tensor.dtype == torch.int8 and name + int8.SCALE in self._files:
            return int8.restored(tensor, self._scale(name, len(tensor)))
        if tensor.dtype not in _KINDS:
            raise BertkitError(
                f"{self.where(name)}: {name} holds {tensor.dtype} numbers, not weights, and there is no "
                f"{name + int8.SCALE} beside it. Use the model it was made from"
            )
        return tensor.to(torch.float32, copy=True)  # a copy: the file may be replaced while the model lives

    def _is_scale(self, name: str) -> bool:
        return name.endswith(int8.SCALE) and name.removesuffix(int8.SCALE) in self._files

    def _scale(self, name: str, rows: int) -> Tensor:
        scale = self._files[name + int8.SCALE].read(name + int8.SCALE)
        if scale.dtype not in _KINDS or scale.numel() != rows:
            raise BertkitError(f"{self.where(name)}: {name} has {rows} rows, but not as many scales: {_AGAIN}")
        return scale


class File:
    """One file of tensors."""

    path: Path
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str) -> Tensor:
        raise NotImplementedError


class _Safe(File):
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with self._open() as file:
                self.shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise BertkitError(f"{path} is not a whole safetensors file ({error}): {_AGAIN}") from None

    def read(self, name: str) -> Tensor:
        with self._open() as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    def _open(self) -> Any:
        return safe_open(self.path, framework="pt")


class _Pickled(File):
    def __init__(self, path: Path) -> None:
        self.path = path
        self._tensors = _unpickle(path)
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def read(self, name: str) -> Tensor:
        return self._tensors[name]


def _unpickle(path: Path) -> dict[str, Tensor]:
    """Tensors of a pickle, by torch's reader that builds tensors and plain containers and runs nothing."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if any(entry.file_size > entry.compress_size for entry in archive.infolist()):
                    raise BertkitError(f"{path} is compressed inside, which torch never does: {_AGAIN}")
        found = torch.load(path, weights_only=True, map_location="cpu")
    except BertkitError:
        raise
    except Exception as error:  # a damaged or hostile pickle can raise anything; none of it is run
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BertkitError(
            f"{path} is damaged, or wants to run code when opened, and was not opened ({reason[:200]}). "
            "Ask for the model as safetensors"
        ) from None
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise BertkitError(f"{path} holds a {type(found).__name__}, not tensors by name")
    tensors = {name: value for name, value in found.items() if isinstance(value, Tensor)}
    _check_storage(tensors, path)
    return tensors


def _check_storage(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse tensors that claim more numbers than the file holds: their copies could have any size."""
    storages: dict[int, int] = {}
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise BertkitError(f"{path}: {name} is not a plain array of numbers. Ask for the model as safetensors")
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        if tensor.nbytes > storage.nbytes():
            raise BertkitError(f"{path}: {name} is {list(tensor.shape)}, more numbers than the file holds: {_AGAIN}")
    there = path.stat().st_size
    if sum(storages.values()) > there or sum(tensor.nbytes for tensor in tensors.values()) > _SHARING * there:
        raise BertkitError(f"{path}: its tensors claim more numbers than the file holds: {_AGAIN}")


def _shards(index: Path, kind: type[_Safe] | type[_Pickled]) -> dict[str, File]:
    """The tensors of several files, by the table that says which is where."""
    table = read_json(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise BertkitError(f"{index} has no weight_map from tensor to file: {_AGAIN}")
    files: dict[str, File] = {}
    for name in sorted(set(table.values())):
        path = index.parent / name
        if not re.fullmatch(r"[\w .+-]+", name) or not path.is_file():
            raise BertkitError(f"{index} names the file {name!r}, which is not beside it: {_AGAIN}")
        files[name] = kind(path)
    for tensor, name in table.items():
        if tensor not in files[name].shapes:
            raise BertkitError(f"{index} says that {name} holds {tensor}, but it does not: {_AGAIN}")
    return {tensor: files[name] for tensor, name in table.items()}


def write(tensors: Mapping[str, Tensor], directory: Path, shard_bytes: int) -> None:
    """Write safetensors: one file, or several of at most `shard_bytes` and their index."""
    shards = list(_packed(tensors, shard_bytes))
    if len(shards) == 1:
        _save(shards[0], directory / SAFE)
        return
    table: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _save(shard, directory / name)
        table |= dict.fromkeys(shard, name)
    size = sum(tensor.nbytes for tensor in tensors.values())
    text = json.dumps({"metadata": {"total_size": size}, "weight_map": table}, indent=2, sort_keys=True)
    (directory / (SAFE + INDEX)).write_text(text + "\n", encoding="utf-8")


def _save(shard: dict[str, Tensor], path: Path) -> None:
    """With the permissions of any other file here: safetensors makes files that only their owner can read."""
    path.touch()
    mode = path.stat().st_mode
    save_file(shard, path, metadata={"format": "pt"})
    path.chmod(mode)


def _packed(tensors: Mapping[str, Tensor], shard_bytes: int) -> Iterator[dict[str, Tensor]]:
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        if shard and size + tensor.nbytes > shard_bytes:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor.contiguous()
        size += tensor.nbytes
    yield shard


def read_json(path: Path) -> dict[str, Any]:
    """A JSON table from a file, or an error that names the file."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BertkitError(f"{path} is missing: {_holds(path.parent)}. Give the directory of a whole model") from None
    except OSError as error:
        raise BertkitError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BertkitError(f"{path} is not JSON ({error}): {_AGAIN}") from None
    if not isinstance(found, dict):
        raise BertkitError(f"{path} holds a {type(found).__name__}, expected a table of settings: {_AGAIN}")
    return found


def _holds(directory: Path) -> str:
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    return f"{directory.name or directory} holds {', '.join(names[:12]) or 'nothing'}"
