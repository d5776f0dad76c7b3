"""How many parameters networks have: those of the papers' tables, and to the last one those of transformers."""

from __future__ import annotations

import pytest
import torch
import transformers

from bertkit.family import albert, bert, electra, families, nezha, roberta, sizes
from bertkit.family.contract import Family
from bertkit.parts.encoder import Encoder
from bertkit.parts.heads import Detect, Head, Pooler
from bertkit.parts.network import Network

POOLER: dict[str, Head] = {"pooler": Pooler()}
DETECT: dict[str, Head] = {"replaced": Detect()}


def count(encoder: Encoder, **heads: Head) -> int:
    with torch.device("meta"):
        network = Network(encoder, heads).build()
    return sum(parameter.numel() for parameter in network.parameters())


PAPERS: dict[str, tuple[Encoder, dict[str, Head], float]] = {
    "bert-base": (bert.encoder("base"), POOLER, 110),
    "bert-large": (bert.encoder("large"), POOLER, 340),
    "roberta-base": (roberta.encoder("base"), POOLER, 125),
    "roberta-large": (roberta.encoder("large"), POOLER, 355),
    "xlm-roberta-base": (roberta.encoder("base", 250_002), POOLER, 270),
    "xlm-roberta-large": (roberta.encoder("large", 250_002), POOLER, 550),
    "albert-base": (albert.encoder("base"), POOLER, 12),
    "albert-large": (albert.encoder("large"), POOLER, 18),
    "albert-xlarge": (albert.encoder("xlarge"), POOLER, 60),
    "albert-xxlarge": (albert.encoder("xxlarge"), POOLER, 235),
    "albert-base-shared-attention": (albert.encoder("base", share="attention"), POOLER, 64),
    "albert-base-shared-feed": (albert.encoder("base", share="feed"), POOLER, 38),
    "albert-base-shared-nothing": (albert.encoder("base", share="nothing"), POOLER, 89),
    "electra-small": (electra.encoder("small"), DETECT, 14),
    "electra-base": (electra.encoder("base"), DETECT, 110),
    "electra-large": (electra.encoder("large"), DETECT, 335),
}
"""the encoder with the published vocabulary, its head, and millions in the paper's table; NEZHA's paper has none"""
ROUNDED = {
    "bert-large": 0.015,
    "xlm-roberta-base": 0.03,
    "xlm-roberta-large": 0.02,
    "albert-xlarge": 0.03,
    "albert-xxlarge": 0.06,
}
"""how far a table is from what its own paper describes, which transformers counts as we do; the others are within 1 in
the last digit that is printed"""


@pytest.mark.parametrize("name", PAPERS)
def test_millions_are_those_of_the_papers_tables(name: str) -> None:
    encoder, heads, paper = PAPERS[name]
    assert count(encoder, **heads) / 1e6 == pytest.approx(paper, abs=max(1, paper * ROUNDED.get(name, 0)))


@pytest.mark.parametrize(
    ("vocabulary", "parameters"),
    {"uncased": 109_482_240, "cased": 108_310_272, "chinese": 102_267_648, "multilingual": 177_853_440}.items(),
)
def test_bert_base_with_the_published_vocabularies(vocabulary: str, parameters: int) -> None:
    assert count(bert.encoder("base", bert.VOCABULARIES[vocabulary]), **POOLER) == parameters


def test_nezha_is_bert_without_its_table_of_positions() -> None:
    assert count(bert.encoder("base")) - count(nezha.encoder("base", 30_522)) == 512 * 768


THERE = {
    "bert": transformers.BertModel,
    "roberta": transformers.RobertaModel,
    "xlm-roberta": transformers.XLMRobertaModel,
    "albert": transformers.AlbertModel,
    "electra": transformers.ElectraModel,
}


def test_whatever_transformers_has_is_compared() -> None:
    known = {name for name in families() if name in transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES}
    assert known == set(THERE)


@pytest.mark.parametrize(
    "name", [name for name, size in sizes().items() if size.family.model_type in THERE and "-shared-" not in name]
)
def test_counts_are_those_of_transformers(name: str) -> None:
    family: Family = sizes()[name].family
    encoder, reference = sizes()[name].build(1000), THERE[family.model_type]
    config = reference.config_class(**family.config(Network(encoder)))
    with torch.device("meta"):
        theirs = reference(config).num_parameters()
    assert count(encoder, **({} if family.model_type == "electra" else POOLER)) == theirs
