"""`bertkit info`: what there is, or what a model is made of."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bertkit.cli.arguments import Json
from bertkit.cli.printing import as_json as to_json
from bertkit.cli.printing import facts as to_text

EXAMPLE = "bertkit info minilm"


def run(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="A directory, an alias such as minilm, or a Hugging Face name."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a model is made of; without a name, list the models there are."""
    facts = _list() if model is None else _describe(model)
    if as_json:
        typer.echo(to_json(facts, indent=2))
        return
    typer.echo(to_text({name: value for name, value in facts.items() if name != "spec"}))
    if model is None:
        one = next(iter(facts["weights_here"]), "MODEL")
        typer.echo(f"Next: bertkit info {one}, or bertkit embed {one} 'a text'")


def _list() -> dict[str, Any]:
    from bertkit import __version__, list_models

    return {
        "bertkit": __version__,
        "weights_here": list_models(pretrained=True),
        "sizes_to_make_new": list_models(pretrained=False),
    }


def _describe(name: str) -> dict[str, Any]:
    import bertkit
    from bertkit.parts.pool import name_of
    from bertkit.spec import to_json
    from bertkit.weights.find import find

    model = bertkit.load(name)
    encoder = model.network.spec.encoder
    return {
        "model": name,
        "directory": str(find(name)),
        "family": model.config["model_type"],
        "heads": list(model.network.spec.heads),
        "loading": str(model.report),
        "layers": len(encoder.order),
        "width": encoder.width,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "vocabulary": len(model.tokenizer),
        "lowercase": model.tokenizer.lowercase,
        "longest_text": model.limit,
        "pool": name_of(model.pool),
        "dense": [module.spec.after for module in model.sentence.dense],
        "normalize": model.normalize,
        "vector_width": model.width,
        "prompts": list(model.prompts),
        "default_prompt": model.default_prompt or "none",
        "spec": to_json(model.network.spec),
    }
