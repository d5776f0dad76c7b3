"""Tags are asked as transformers' BertForTokenClassification asks them, paths as all paths written out say."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

import bertkit
from bertkit.batch import Batch, Example, Packed, Padded, collate
from bertkit.errors import BertkitError
from bertkit.family import families
from bertkit.model import Model
from bertkit.objectives.mask import Vocabulary
from bertkit.objectives.masked_lm import MaskedLm
from bertkit.objectives.objective import Objective
from bertkit.objectives.tags import ChainQuestion, TagQuestion
from bertkit.parts.encoder import with_dropout
from bertkit.parts.heads import Chain, ChainModule, Tag
from bertkit.parts.network import Network, NetworkModule
from bertkit.spec import from_json, to_json
from bertkit.text import Tokenizer
from tests.objectives.test_objectives import drawn_wide, pairs
from tests.reference import LAYOUTS, gradients, in_order, worst

TOLERANCE = 1e-5
LABELS = ("O", "B-PER", "I-PER")
WORDS = [[1, 2, 4], [2], [1, 3, 4, 5, 8], [], [1, 2, 3, 4], [3, 5]]
"""of each example, where the first tokens of its words are"""
LENGTHS = [6, 4, 11, 5, 6, 9]


def examples(vocabulary: int, chosen: slice = slice(None)) -> list[Example]:
    random = np.random.default_rng(0)
    made = []
    for length, words in zip(LENGTHS, WORDS, strict=True):
        tokens = {"ids": random.integers(1, vocabulary, length), "segments": random.integers(0, 2, length)}
        marks = {"tag": (np.array(words, np.int64), random.integers(0, len(LABELS), len(words)))}
        made.append(Example(tokens, marks, {"words": len(words)}))
    return made[chosen]


def theirs(some: list[Example]) -> dict[str, Tensor]:
    """As transformers takes them: -100 where no word begins."""
    batch = collate(some, Padded)
    labels = torch.full(batch.layout.shape, -100)
    for row, example in enumerate(some):
        at, tags = example.marks["tag"]
        labels[row, at] = torch.from_numpy(tags)
    mask = torch.arange(labels.shape[1]) < torch.tensor([len(example) for example in some])[:, None]
    names = {"input_ids": batch.tokens["ids"], "token_type_ids": batch.tokens["segments"]}
    return {**names, "attention_mask": mask.long(), "labels": labels}


def undropped(tokenizer: Tokenizer, objective: Objective) -> Model:
    """A small BERT, weights and links drawn wide, whose head drops nothing."""
    made = drawn_wide(tokenizer, objective)
    made.network.eval()
    return made


def means(objective: Objective, network: NetworkModule, batch: Batch) -> Tensor:
    asked, counts = objective.loss(network, network(batch), batch), objective.counts(batch)
    assert asked.keys() == counts.keys()
    return sum(asked[name].loss / counts[name] for name in asked)


# TagQuestion ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_loss_and_gradients_equal_transformers(tokenizer: Tokenizer, tmp_path: Path) -> None:
    objective, some = TagQuestion(LABELS), examples(len(tokenizer))
    made = undropped(tokenizer, objective)
    assert made.network.spec.heads == {"tag": Tag(LABELS)}
    reference = transformers.BertForTokenClassification.from_pretrained(made.save(tmp_path / "model")).eval()
    given = theirs(some)
    expected = reference(**given)
    expected.loss.backward()
    for layout in LAYOUTS:
        batch = collate(some, layout)
        assert objective.counts(batch) == {"tag": sum(map(len, WORDS))}
        made.network.zero_grad()
        loss = means(objective, made.network, batch)
        assert abs(float((loss - expected.loss).detach())) <= TOLERANCE
        loss.backward()
        mine = gradients(made.network)
        for name, parameter in reference.named_parameters():
            assert worst(mine[name], parameter.grad) <= TOLERANCE, (layout, name)
        right = objective.loss(made.network, made.network(batch), batch)["tag"].right
        assert int(right) == int((expected.logits.argmax(-1) == given["labels"]).sum())


@pytest.mark.parametrize("kind", [TagQuestion, ChainQuestion])
def test_small_batches_add_up_to_a_large_one(kind: type[TagQuestion], tokenizer: Tokenizer) -> None:
    """Also where small batches have unequal numbers of words, or none: rows 3 to 4 are one without words."""
    objective = kind(LABELS)
    network = undropped(tokenizer, objective).network
    means(objective, network, collate(examples(len(tokenizer)))).backward()
    expected = {name: parameter.grad.clone() for name, parameter in network.named_parameters()}
    network.zero_grad()
    batches = [collate(examples(len(tokenizer), slice(*ends))) for ends in ((0, 3), (3, 4), (4, 6))]
    counts = [objective.counts(batch) for batch in batches]
    assert counts == ([{"tag": 9}, {"tag": 0}, {"tag": 6}] if kind is TagQuestion else [{"tags": n} for n in (3, 0, 2)])
    (question,) = counts[0]
    whole = sum(count[question] for count in counts)
    for batch in batches:
        asked = objective.loss(network, network(batch), batch)[question]
        (asked.loss / whole).backward()
    assert int(asked.right) <= 2
    for name, parameter in network.named_parameters():
        assert float((parameter.grad - expected[name]).norm()) <= 1e-6 * float(expected[name].norm()) + 1e-8, name


# ChainQuestion ──────────────────────────────────────────────────────────────────────────────────────────────────────


def written_out(network: NetworkModule, some: list[Example]) -> tuple[Tensor, int]:
    """The sum over sentences of -log p, and of how many the true path is the best: all paths, in float64."""
    batch = collate(some, Padded)
    logits = in_order(batch, network.logits("tag", network(batch), batch.layout)).double()  # [B, L, C]
    transitions, first, last = (x.double() for x in network.heads["tag"].links)
    total, right = torch.zeros((), dtype=torch.float64), 0
    for row, example in enumerate(some):
        at, tags = (values.tolist() for values in example.marks["tag"])
        if not at:
            continue
        every = {}
        for path in product(range(len(LABELS)), repeat=len(at)):
            inner = sum(transitions[a, b] for a, b in pairwise(path))
            every[path] = sum(logits[row, at, path]) + inner + first[path[0]] + last[path[-1]]
        total = total + torch.stack(list(every.values())).logsumexp(0) - every[tuple(tags)]
        right += max(every, key=lambda path: float(every[path].detach())) == tuple(tags)
    return total, right


def test_paths_are_asked_as_all_paths_say(tokenizer: Tokenizer) -> None:
    objective, some = ChainQuestion(LABELS), examples(len(tokenizer))
    network = undropped(tokenizer, objective).network
    expected, _ = written_out(network, some)
    expected.backward()
    slopes = {name: parameter.grad.clone() for name, parameter in network.named_parameters()}
    losses = []
    for layout in LAYOUTS:
        batch = collate(some, layout)
        assert objective.counts(batch) == {"tags": 5}, "a row without words is not asked"
        network.zero_grad()
        asked = objective.loss(network, network(batch), batch)["tags"]
        assert abs(float((asked.loss - expected).detach())) <= TOLERANCE
        asked.loss.backward()
        for name, parameter in network.named_parameters():
            apart = float((parameter.grad - slopes[name]).norm())
            assert apart <= TOLERANCE * float(slopes[name].norm()) + 1e-6, (layout, name)
        losses.append(asked.loss.item())
    assert losses[0] == pytest.approx(losses[1], abs=TOLERANCE)


def test_a_sentence_is_right_if_all_of_its_tags_are(tokenizer: Tokenizer) -> None:
    """Emissions are nothing: links alone make 0 1 2 0 1 the best path, which is right where it is true."""
    objective, some = ChainQuestion(LABELS), examples(len(tokenizer))
    network = undropped(tokenizer, objective).network
    head = network.heads["tag"]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.first[0] = 5.0
        head.transitions.weight[[0, 1, 2], [1, 2, 0]] = 5.0
    for row, example in enumerate(some):
        example.marks["tag"][1][:] = np.arange(len(WORDS[row])) % 3
    some[2].marks["tag"][1][-1] = 0  # one wrong word of five
    for layout in LAYOUTS:
        batch = collate(some, layout)
        asked = objective.loss(network, network(batch), batch)["tags"]
        assert (int(asked.right), written_out(network, some)[1]) == (4, 4)


def test_links_learn_what_words_do_not_say(tokenizer: Tokenizer) -> None:
    """Tags follow each other, and nothing learns but the links."""
    torch.manual_seed(0)
    objective = ChainQuestion(LABELS)
    encoder = with_dropout(families()["bert"].sizes["tiny"](len(tokenizer)), 0.0)
    network = Network(encoder, {"tag": Chain(LABELS, dropout=0.0)}).build()
    links = network.heads["tag"].links
    tags = np.array([0, 1, 2, 0, 1, 2])
    tokens = {"ids": np.full(8, 7), "segments": np.zeros(8, np.int64)}
    batch = collate([Example(tokens, {"tag": (np.arange(1, 7), tags)}, {"words": 6})] * 2)
    assert int(objective.loss(network, network(batch), batch)["tags"].right) == 0
    optimizer = torch.optim.Adam(links, lr=0.3)
    for _ in range(40):
        loss = means(objective, network, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    asked = objective.loss(network, network(batch), batch)["tags"]
    assert (int(asked.right), asked.loss.item() < 0.2) == (2, True)


# Files ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chained(name: str, tokenizer: Tokenizer) -> Model:
    """The smallest network of a family with a chain whose links are far from those of a new one."""
    torch.manual_seed(0)
    encoder = families()[name].sizes["tiny"](len(tokenizer)).after(tokenizer.pad_id)
    network = Network(encoder, {"tag": Chain(LABELS, 0.3)}).build().eval()
    for parameter in network.heads.parameters():
        torch.nn.init.normal_(parameter, std=1.0)
    return Model(network, tokenizer, config={"model_type": name})


@pytest.mark.parametrize("name", families())
def test_a_chain_comes_back_from_files_of_every_family(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    made = chained(name, tokenizer)
    again = bertkit.load(made.save(tmp_path / "model"))
    assert again.network.spec == made.network.spec
    assert (again.report.taken, again.report.left, again.report.new) == (("tag",), (), ())
    for (a, x), (b, y) in zip(made.network.named_parameters(), again.network.named_parameters(), strict=True):
        assert a == b
        assert torch.equal(x, y), a
    with safe_open(tmp_path / "model" / "model.safetensors", "pt") as file:
        filed = {key: file.get_tensor(key) for key in file.keys() if key.startswith("crf.")}  # noqa: SIM118
    assert filed.keys() == {"crf.transitions", "crf.start", "crf.end"}
    for key, link in zip(("crf.transitions", "crf.start", "crf.end"), made.network.heads["tag"].links, strict=True):
        assert torch.equal(filed[key], link), key


@pytest.mark.parametrize("name", [name for name in families() if name != "nezha"])
def test_transformers_opens_it_as_a_tagger(name: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """It has no links, and says that it leaves them; its logits are the emissions."""
    made = chained(name, tokenizer)
    reference, info = transformers.AutoModelForTokenClassification.from_pretrained(
        made.save(tmp_path / "model"), output_loading_info=True
    )
    assert set(info["unexpected_keys"]) == {"crf.transitions", "crf.start", "crf.end"}
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    some = examples(len(tokenizer))
    given = theirs(some)
    del given["labels"]
    given["token_type_ids"] = given["token_type_ids"] % made.network.spec.encoder.embed.segments
    given["input_ids"] = given["input_ids"].masked_fill(given["attention_mask"] == 0, tokenizer.pad_id)
    mine = [
        Example({"ids": x.tokens["ids"], "segments": x.tokens["segments"] % made.network.spec.encoder.embed.segments})
        for x in some
    ]
    with torch.no_grad():
        expected = reference.eval()(**given).logits
        batch = collate(mine, Packed)
        logits = in_order(batch, made.network.logits("tag", made.network(batch), batch.layout))
    real = given["attention_mask"].bool()
    assert worst(logits[real], expected[real]) <= TOLERANCE


def test_a_chain_and_a_tagger_are_not_taken_for_each_other(tokenizer: Tokenizer, tmp_path: Path) -> None:
    chained("bert", tokenizer).save(tmp_path / "chain")
    plain = bertkit.load(tmp_path / "chain", heads={"tag": Tag(LABELS)})
    assert (plain.report.taken, plain.report.left, plain.report.new) == ((), ("tag",), ("tag",))
    bertkit.create("bert-tiny", tokenizer, {"tag": Tag(LABELS)}, seed=0).save(tmp_path / "tag")
    chain = bertkit.load(tmp_path / "tag", heads={"tag": Chain(LABELS)})
    assert (chain.report.taken, chain.report.left, chain.report.new) == ((), ("tag",), ("tag",))
    head = chain.network.heads["tag"]
    assert isinstance(head, ChainModule)
    assert 0 < float(head.links[0].detach().abs().max()) <= 0.04, "made new, and small"


def test_what_a_file_calls_otherwise_is_left_and_what_it_lost_is_missed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    made = chained("bert", tokenizer)
    made.save(tmp_path / "model")
    (tmp_path / "model" / "bertkit-manifest.json").unlink()
    file = tmp_path / "model" / "model.safetensors"
    with safe_open(file, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    end = tensors.pop("crf.end")
    save_file(tensors, file)
    with pytest.raises(BertkitError, match=r"lacks crf\.end"):
        bertkit.load(tmp_path / "model")
    start = tensors.pop("crf.start")
    save_file(tensors | {"crf.start_transitions": start, "crf.end_transitions": end}, file)
    other = bertkit.load(tmp_path / "model")
    assert other.network.spec.heads == {"tag": Tag(LABELS, 0.3)}
    assert other.report.left == ("crf",), "another library's chain"


# Refusals ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_questions_go_to_json_and_back() -> None:
    for objective in (TagQuestion(LABELS), ChainQuestion(LABELS), MaskedLm() + ChainQuestion(("人", "O"))):
        assert from_json(to_json(objective)) == objective


def test_what_cannot_be_asked_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(BertkitError, match=r"ChainQuestion asks for words that are marked 'tag', but .* marks none"):
        ChainQuestion(LABELS).corrupt(pairs(tokenizer, "next"), Vocabulary.of(tokenizer))
    made, batch = undropped(tokenizer, TagQuestion(LABELS)), collate(examples(len(tokenizer)))
    with pytest.raises(BertkitError, match=r"the head 'tag' of this model is Tag, without links.*load it as Chain"):
        ChainQuestion(LABELS).loss(made.network, made.network(batch), batch)
    bare = undropped(tokenizer, MaskedLm()).network
    with pytest.raises(BertkitError, match=r"no 'tag' head. Its heads: mlm"):
        TagQuestion(LABELS).loss(bare, bare(batch), batch)
