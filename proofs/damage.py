"""Damage the files of a model anywhere: it opens, or one clear error says why not."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import bertkit
from bertkit.parts.heads import Mlm, Pooler

CLAIM = "20,000 random changes to the files of a model end in a model or in one clear error, never in a crash"
COVERS = (
    "bertkit/weights",
    "bertkit/text",
    "bertkit/family",
    "bertkit/names.py",
    "bertkit/spec.py",
    "bertkit/model.py",
)

CASES, PIECE = 20_000, 1000
FILES = (
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
)
Result = dict[str, int | float | str]


def parts() -> Iterable[tuple[str, Callable[[], Result]]]:
    for piece in range(CASES // PIECE):
        yield f"{piece * PIECE}-{(piece + 1) * PIECE - 1}", partial(run, piece, PIECE)


def summary(results: list[Result]) -> str:
    total = Counter[str]()
    for result in results:
        total.update({name: int(count) for name, count in result.items()})
    assert total["opened"] + total["refused"] == CASES
    counts = f"{total['opened']:,} opened, {total['refused']:,} refused, 0 crashed"
    return f"{CASES:,} changes over {len(FILES)} files: {counts}"


def run(seed: int, count: int) -> Result:
    """How many damaged models opened and how many were refused; any exception but ours is raised."""
    dice, found = random.Random(seed), Counter[str](opened=0, refused=0)
    with tempfile.TemporaryDirectory() as folder:
        path = template(Path(folder) / "model")
        for _ in range(count):
            file = path / dice.choice(FILES)
            original = file.read_bytes()
            file.write_bytes(damaged(original, dice))
            try:
                bertkit.load(path)
                found["opened"] += 1
            except bertkit.BertkitError as error:
                found["refused" if str(error).strip() else "silent"] += 1
            except Exception as error:
                raise AssertionError(
                    f"{file.name}: {type(error).__name__}: {error}; file: {file.read_bytes()!r}"
                ) from error
            file.write_bytes(original)
    return dict(found)


def template(path: Path) -> Path:
    """A whole model with all its files, without the manifest that would notice any damage at once."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "dog", "##s"]
    made = bertkit.create(
        "bert-tiny", bertkit.Tokenizer.from_vocabulary(words), {"pooler": Pooler(), "mlm": Mlm()}, seed=0
    )
    made.add_special_tokens(["[NEW]"])
    made.save(path)
    (path / "bertkit-manifest.json").unlink()
    (path / "1_Pooling").mkdir()
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [f'{{"idx": 0, "name": "0", "path": "{place}", "type": "s.{kind}"}}' for place, kind in kinds.items()]
    (path / "modules.json").write_text(f"[{', '.join(modules)}]")
    (path / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 128, "pooling_mode_mean_tokens": true}'
    )
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 128, "do_lower_case": false}')
    return path


def damaged(original: bytes, dice: random.Random) -> bytes:
    """Bytes overwritten, put in, taken out, cut off; or one piece of the text replaced by something nasty."""
    # in safetensors the header is where damage is interesting; among the numbers it is only another weight
    at = dice.randrange(min(len(original), 4000))
    some = bytes(dice.randrange(256) for _ in range(dice.randint(1, 6)))
    nasty = dice.choice(
        [b"null", b"-1", b"1e999", b"[]", b"{}", b'""', b"true", b"99999999999999999999", b"NaN", b'"\\ud800"']
    )
    match dice.randrange(6):
        case 0:
            return original[:at] + some + original[at + len(some) :]
        case 1:
            return original[:at] + some + original[at:]
        case 2:
            return original[:at] + original[at + dice.randint(1, 20) :]
        case 3:
            return original[:at]
        case 4:
            return original[:at] + nasty + original[at + len(nasty) :]
        case _:
            colon = original.find(b":", at)
            end = min((found for found in (original.find(mark, colon) for mark in b",}]") if found > 0), default=at)
            return original[: colon + 1] + nasty + original[end:] if 0 < colon < end else original[:at] + nasty
