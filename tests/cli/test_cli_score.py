"""`bertkit score`: what is printed, what is said, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Bertkit

PUBLISHED = {
    "1.1/BERT": {"exact": 86.20624408703878, "f1": 92.19557978351145},
    "1.1/Logistic": {"exact": 40.14191106906339, "f1": 50.98153647324461},
    "1.1/r-net": {"exact": 82.46925260170293, "f1": 88.47785965423249},
    "v2.0/BERT": {
        "exact": 78.74168280973637,
        "f1": 81.77528052374723,
        "HasAns_exact": 74.10593792172739,
        "HasAns_f1": 80.18183293833508,
        "NoAns_exact": 83.36417157275021,
        "NoAns_f1": 83.36417157275021,
    },
    "v2.0/BiDAF": {"exact": 65.70369746483618, "f1": 67.87648921451334},
}
SETS = {"1.1": "SQuAD1.1/dev-v1.1.json.gz", "v2.0": "SQuAD2.0/dev-v2.0.reconstructed.json.gz"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_predictions(run: Bertkit, shared: Path, name: str) -> None:
    version, model = name.split("/")
    data = shared / "data" / SETS[version]
    found = sorted((shared / "data" / "SQuAD-model-predictions" / version).glob(f"{model}*"))
    if not found or not data.is_file():
        pytest.skip("needs ../shared/data/SQuAD-model-predictions and SQuAD's dev sets; not found")
    ran = run("score", "squad", "--data", data, "--predictions", found[0], "--json")
    told = json.loads(ran.out)
    strangers = (13, 28) if model == "Logistic" else (0, 0)  # its file is for an older set
    assert (ran.code, told["missing"], told["unknown"]) == (0, *strangers)
    assert told["scores"] | PUBLISHED[name] == told["scores"]
    assert told["total"] == told["rows"] == {"1.1": 10570, "v2.0": 11873}[version]
    assert told["fingerprint"]["measures"] == list(told["scores"])


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


SQUAD = [
    {"id": "1", "question": "Who?", "context": "Mia sleeps.", "answers": ["Mia"], "is_impossible": False},
    {"id": "2", "question": "Why?", "context": "Mia sleeps.", "answers": [], "is_impossible": True},
    {"id": "3", "question": "What?", "context": "Mia sleeps.", "answers": ["sleeps"], "is_impossible": False},
]


def test_squad(run: Bertkit, tmp_path: Path) -> None:
    data = put(tmp_path / "dev.json", json.dumps(SQUAD))
    found = put(tmp_path / "found.json", json.dumps({"1": "Mia sleeps", "2": "x", "4": "\n"}))
    nothing = put(tmp_path / "nothing.json", json.dumps({"1": 0.123456789, "2": 3, "3": 0.2}))
    ran = run("score", "squad", "--data", data, "--predictions", found, "--no-answer", nothing)
    assert ran.code == 0
    *lines, last = ran.out.splitlines()
    assert dict(line.rsplit(maxsplit=1) for line in lines) == {
        **{"exact": "0.00", "f1": "22.22", "total": "3"},
        **{"HasAns exact": "0.00", "HasAns f1": "33.33", "HasAns total": "2"},
        **{"NoAns exact": "0.00", "NoAns f1": "0.00", "NoAns total": "1"},
        **{"best exact": "33.33", "best exact thresh": "0.0", "best f1": "55.56", "best f1 thresh": "0.123456789"},
    }
    assert last.startswith("fingerprint")
    assert ran.err == (
        "bertkit: 1 of 3 questions have no prediction and count as wrong: '3'\n"
        "bertkit: 1 predictions are for no question of the data and are left out: '4'\n"
    )


def test_squad_with_the_measure_of_cmrc(run: Bertkit, tmp_path: Path) -> None:
    row = {"id": "1", "question": "?", "context": "他在北京的大学。", "answers": ["在北京的大学"]}
    data, found = put(tmp_path / "dev.json", json.dumps([row])), put(tmp_path / "found.json", '{"1": "北京大学"}')
    ran = run("score", "squad", "--data", data, "--predictions", found, "--measure", "cmrc")
    assert ran.out.split()[:8] == ["exact", "0.00", "f1", "40.00", "average", "20.00", "total", "1"]


RTE = "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n"


def test_glue(run: Bertkit, tmp_path: Path) -> None:
    data, found = put(tmp_path / "dev.tsv", RTE), put(tmp_path / "RTE.tsv", "index\tprediction\n0\t0\n1\t0\n")
    ran = run("score", "glue", "--task", "rte", "--data", data, "--predictions", found)
    assert ran.code == 0
    assert ran.out.split()[:5] == ["accuracy", "0.5000", "rows", "2", "fingerprint"]
    assert "0 is entailment, 1 is not_entailment. Another order: --labels not_entailment,entailment" in ran.err
    other = run(
        *("score", "glue", "--task", "rte", "--data", data, "--predictions", found),
        *("--labels", "not_entailment, entailment", "--json"),
    )
    assert json.loads(other.out)["scores"] == {"accuracy": 0.5}
    assert json.loads(other.out)["notes"] == [other.err.removeprefix("bertkit: ").strip()]


def test_ner(run: Bertkit, tmp_path: Path) -> None:
    both = put(tmp_path / "both.txt", "Mia B-PER B-PER\nsleeps O O\n\nRome B-LOC B-PER\n")
    ran = run("score", "ner", "--predictions", both)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:6] == [
        "     precision  recall     f1  found",
        "all      50.00   50.00  50.00      2",
        "LOC       0.00    0.00   0.00      0",
        "PER      50.00  100.00  66.67      2",
        "sentences    2",
        "words        3",
    ]
    told = json.loads(run("score", "ner", "--predictions", both, "--json").out)
    assert (told["right"], told["found"], told["true"], told["kinds"]["PER"]["right"]) == (1, 2, 2, 1)


def test_sts(run: Bertkit, tmp_path: Path) -> None:
    data, found = put(tmp_path / "gs.txt", "1\n\n3\n2\n"), put(tmp_path / "found.txt", "0.1\n0.3\n0.2\n")
    ran = run("score", "sts", "--data", data, "--predictions", found)
    assert ran.out.split()[:6] == ["pearson", "1.0000", "spearman", "1.0000", "rows", "3"]
    assert ran.err == "bertkit: 1 of 4 rows have no score and are left out\n"


def test_what_is_wrong_is_one_message(run: Bertkit, tmp_path: Path) -> None:
    data, found = put(tmp_path / "dev.tsv", RTE), put(tmp_path / "found.txt", "1\n")
    ran = run("score", "glue", "--task", "rte", "--data", data, "--predictions", found)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"bertkit: error: {found} has 1 predictions, but {data} has 2 rows: there must be one for each\n"
    )
    assert "did you mean 'rte'?" in run("score", "glue", "--task", "rt", "--data", data, "--predictions", found).err
    assert run("score", "sts", "--data", data).code == 2


def test_help_is_light_and_only_glue_needs_torch(tmp_path: Path) -> None:
    gs, found = put(tmp_path / "gs.txt", "1\n2\n"), put(tmp_path / "found.txt", "1\n2\n")
    program = (
        "import sys, bertkit.cli\n"
        "def run(*arguments):\n"
        "    sys.argv = ['bertkit', 'score', *arguments]\n"
        "    try:\n        bertkit.cli.main()\n    except SystemExit as exit:\n        assert not exit.code\n"
        "for verb in ('squad', 'glue', 'ner', 'sts'):\n    run(verb, '--help')\n"
        "assert not {'torch', 'numpy', 'tokenizers'} & set(sys.modules)\n"
        f"run('sts', '--data', {str(gs)!r}, '--predictions', {str(found)!r})\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
