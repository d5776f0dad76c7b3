"""The model card: what a fine-tuned model is, for people and for the Hub."""

from __future__ import annotations

from typing import Any

from bertkit.tasks.answering import QuestionAnswering
from bertkit.tasks.choosing import MultipleChoice
from bertkit.tasks.finetuned import Finetuned
from bertkit.text.truncate import POLICIES, Chunk, Policy, Refuse

PIPELINES = {
    "Tagging": "token-classification",
    "QuestionAnswering": "question-answering",
    "MultipleChoice": "multiple-choice",
}


def card(made: Finetuned) -> str:
    """README.md with the front matter that the Hub reads."""
    facts, task = made.facts, made.task
    kind = type(task).__name__
    labels = getattr(task, "labels", ())
    scores = facts.get("scores", {})
    lines = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {PIPELINES.get(kind, 'text-classification')}",
        f"base_model: {_quoted(facts.get('model', ''))}",
        "tags: [bertkit]",
        *(["metrics:", *(f"- {_quoted(name)}" for name in scores)] if scores else []),
        "---",
        "",
        f"# {kind}, fine-tuned from {facts.get('model', 'a BERT')}",
        "",
        f"Learned from: {facts.get('told', 'rows that were given')}.",
        "",
        *(_table("On the rows for exams", {name: f"{value:.4f}" for name, value in scores.items()}) if scores else []),
        *_table("Settings", facts.get("settings", {})),
        *([f"Labels: {', '.join(labels[:50])}{' …' if labels[50:] else ''}", ""] if labels else []),
        f"Inputs have at most {made.model.limit} tokens; {_longer(made.policy)}.",
        "",
        "```python",
        "from bertkit import Finetuned",
        f'print(Finetuned.load("this directory").predict([{_asked(made)}]))',
        "```",
    ]
    return "\n".join(lines) + "\n"


def _longer(policy: Policy) -> str:
    """What happens to inputs that are too long, in words."""
    match policy:
        case Chunk(stride=None):
            return "longer ones are read in chunks"
        case Chunk(stride=stride):
            return f"longer ones are read in chunks that begin {stride} tokens apart"
        case Refuse():
            return "longer ones are refused"
    return f"of longer ones is kept: {next(name for name, one in POLICIES.items() if type(one) is type(policy))}"


def _asked(made: Finetuned) -> str:
    """What somebody would ask, as it is typed."""
    match made.task:
        case QuestionAnswering():
            return '("a question?", "a text that answers it")'
        case MultipleChoice():
            return '{"text": "what all have in common", "choices": ["one", "another"]}'
    return '("a text", "a second one")' if getattr(made.layout, "pair", ()) else '"a text"'


def _table(title: str, rows: dict[str, Any]) -> list[str]:
    return [f"| {title} | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items()), ""]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
