"""The long checks behind our claims: one module per claim, run by `python -m proofs.run`.

A module says what it proves and does the work in named parts, so that a run that is stopped goes on where it was:

    CLAIM = "one sentence"
    COVERS = ("bertkit/artifact.py",)       # paths of the repository whose change makes the proof stale
    def parts() -> Iterable[tuple[str, Callable[[], dict[str, int | float | str]]]]: ...
    def summary(results: list[dict[str, int | float | str]]) -> str: ...

A part that raises means that the claim does not hold.
"""
