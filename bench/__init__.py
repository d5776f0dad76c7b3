"""Side by side with peers: one module per workload, run by `python -m bench.run`.

A workload says which cases it has; a case says what every contestant is asked, so that nothing about a peer is in it:

    def cases(quick: bool) -> Iterable[Case]: ...

A contestant is a module of `bench/peers/`, run as a process of its own that stays for the whole run. One with a lock
beside it (`NAME.txt`) runs in its own environment, built by `python -m bench.install`; the others in this one.
"""
