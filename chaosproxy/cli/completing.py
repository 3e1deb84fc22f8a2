"""Completion in a shell: the names that begin as a word does.

Takes a function that gives all names; gives what click asks for those of a word.
"""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem


def names_from(
    known: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Give a `shell_complete` that offers these."""

    def complete(_ctx: click.Context, _param: click.Parameter, word: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known() if name.startswith(word)]

    return complete
