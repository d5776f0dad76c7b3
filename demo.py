"""The main job on real weights: sentences in, their nearest neighbours out. Run by `make demo`."""

from itertools import combinations

from rich.console import Console
from rich.table import Table

import bertkit

SENTENCES = [
    "The last train to the coast leaves at ten.",
    "You can still catch a late train to the seaside at 22:00.",
    "My sourdough did not rise overnight.",
    "The bread dough stayed flat until morning.",
    "Our invoice from March has not been paid.",
    "We are still waiting for the money for the spring bill.",
    "A gentle rain fell on the vineyard.",
    "Drizzle covered the rows of grapes.",
    "The goalkeeper saved two penalties.",
    "She learned to play the cello at sixty.",
    "At sixty years old, she took up a string instrument.",
    "The committee postponed its vote.",
]


def main() -> None:
    model = bertkit.load("minilm")
    vectors = model.embed(SENTENCES)  # [12, 384], of length 1
    pairs = combinations(range(len(SENTENCES)), 2)
    nearest = sorted(((float(vectors[a] @ vectors[b]), a, b) for a, b in pairs), reverse=True)[:5]

    table = Table(title=f"The nearest pairs among {len(SENTENCES)} sentences", title_justify="left")
    table.add_column("cosine", justify="right")
    table.add_column("sentence")
    table.add_column("and its neighbour")
    for cosine, a, b in nearest:
        table.add_row(f"{cosine:.2f}", SENTENCES[a], SENTENCES[b])
    console = Console()
    console.print(model, table, sep="\n")
    print(
        "Next, type:\n"
        "  .venv/bin/bertkit info minilm                      what the model is made of\n"
        "  .venv/bin/bertkit tokenize minilm 'your own text'  what it sees\n"
        "  .venv/bin/bertkit embed minilm 'your own text'     what it makes of it"
    )


if __name__ == "__main__":
    main()
