"""Real checkpoints of variants give transformers' numbers."""

from __future__ import annotations

import pytest
import torch
import transformers

import bertkit
from bertkit.runtime.stream import example
from bertkit.weights import directory
from tests.pretrained import CHINESE_ALBERT, KOREAN_ALBERT, pretrained
from tests.reference import LAYOUTS, Inputs, in_order, inputs, worst

TOLERANCE = 1e-5
TEXTS = {
    CHINESE_ALBERT: ["今天的会议改到下午三点。", "她在图书馆读书。", "火车晚点了 20 分钟"],
    KOREAN_ALBERT: ["오늘 회의는 오후 세 시로 바뀌었다.", "그녀는 도서관에서 책을 읽는다."],
}


@pytest.mark.parametrize("package", TEXTS, ids=["chinese", "korean"])
def test_every_logit_is_that_of_transformers(package: tuple[str, str]) -> None:
    path = pretrained(package)
    network, _, report = directory.read(path)
    assert report.left == report.new == ()
    heads = {"mlm": "prediction_logits", "next_sentence": "sop_logits"} if "next_sentence" in report.taken else {}
    kind = transformers.AlbertForPreTraining if heads else transformers.AlbertForMaskedLM
    heads = heads or {"mlm": "logits"}
    network, model = (
        network.double(),
        kind.from_pretrained(path).eval().double(),
    )  # rounding grows in twelve equal layers
    tokenizer = transformers.BertTokenizerFast.from_pretrained(path)
    padded = tokenizer(TEXTS[package], padding=True, return_tensors="pt")
    mine = [bertkit.Tokenizer.load(path).encode(text) for text in TEXTS[package]]
    data = inputs([len(one.ids) for one in mine], 100)
    examples = [example(one.ids, one.segments) for one in mine]
    data = Inputs(examples, padded["input_ids"], padded["token_type_ids"], data.mask)
    with torch.no_grad():
        expected = model(**data.theirs())
        for layout in LAYOUTS:
            batch = data.ours(layout)
            hidden = network(batch)
            for head, key in heads.items():
                logits = network.logits(head, hidden, batch.layout)
                if head == "mlm":
                    got, wanted = data.real(in_order(batch, logits)), data.real(expected[key])
                else:
                    got, wanted = batch.restore(logits), expected[key]
                assert worst(got, wanted) <= TOLERANCE
