"""What is wrong with servers that are to take over from each other, for whoever asks them to.

Takes a text that says it; apart from `pair`, which only a proxy with a standby reads in.
"""


class PairError(Exception):
    """The servers are not what a primary and its standby are; the text says why."""


class UnsurePairError(PairError):
    """They were asked to take over, and may have done it all the same."""
