"""Files for GLUE's test server: an index and a prediction in each row, under the names that it wants."""

from __future__ import annotations

from pathlib import Path

from bertkit import artifact
from bertkit.errors import BertkitError
from bertkit.tasks.finetuned import Finetuned
from bertkit.tasks.known import KNOWN, Known

LOW, HIGH = 0.0, 5.0
"""of STS-B: the server refuses numbers outside"""


def submit(made: Finetuned, data: Path, folder: Path) -> list[Path]:
    """Write all files that a GLUE task wants, of a folder with its test sets or of one test set."""
    tests = _tests(made, data)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path, (name, known) in tests.items():
        with artifact.file(folder / name, overwrite=True) as file:
            file.write(b"index\tprediction\n")
            for index, answer in enumerate(made.answers(known.layout.items(path))):
                file.write(f"{index}\t{_bounded(answer.short, known)}\n".encode())
        written.append(folder / name)
    return written


def _bounded(prediction: str, known: Known) -> str:
    return f"{min(max(float(prediction), LOW), HIGH):.3f}" if known.title == "STS-B" else prediction


def _tests(made: Finetuned, data: Path) -> dict[Path, tuple[str, Known]]:
    """The test sets that fit what was learned, with the names of their files."""
    learned = [known for known in KNOWN.values() if known.submission and known.task and _alike(known, made)]
    found: dict[Path, tuple[str, Known]] = {}
    for known in learned:
        for split, name in known.submission.items():
            path = known.file(data, split) if data.is_dir() else data
            fits = path is not None and (data.is_dir() or path.name.removesuffix(".gz") in known.files[split])
            if path is not None and fits:
                found.setdefault(path, (name, known))
    if not found:
        titles = ", ".join(known.title for known in learned) or "none of GLUE's"
        raise BertkitError(
            f"{data} has no test set of what this model learned ({titles}). Give the folder of the task, such as "
            "glue/MRPC, with its test.tsv"
        )
    return found


def _alike(known: Known, made: Finetuned) -> bool:
    """Whether a task of GLUE asks what the model answers, of tables with the columns that it learned from."""
    diagnostic = known.title == "diagnostic" and made.layout == KNOWN["mnli"].layout
    return known.task == made.task and (known.layout == made.layout or diagnostic)
