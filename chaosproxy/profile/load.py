"""Profiles as a whole: several read, overridden, joined and checked.

Takes texts of YAML, overrides and the command table; gives one `Profile`, or raises `ProfileError` with
everything that is wrong.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.core.scalar import shown
from chaosproxy.core.setting import settings_of
from chaosproxy.profile.checks import check_rules
from chaosproxy.profile.fields import Head
from chaosproxy.profile.overrides import Override, apply_to_faults, apply_to_head, read_override
from chaosproxy.profile.problems import Problems, Text
from chaosproxy.profile.reader import read_settings, refuse_unknown
from chaosproxy.profile.rules import FIELDS as ENTRY_FIELDS
from chaosproxy.profile.rules import name_entries, read_rule
from chaosproxy.profile.yaml_nodes import Node, compose, decode


@dataclass(frozen=True, slots=True)
class Source:
    """A profile's YAML as it was found: its name, its bytes, and what messages call the file."""

    name: str
    raw: bytes
    file: str


def load(
    sources: Sequence[Source],
    *,
    table: CommandTable | None = None,
    overrides: Sequence[str] = (),
) -> Profile:
    """Read profiles and join them: their faults one after the other, their names with `+`.

    `overrides` are `path=value` as `--set` takes them. With a table the names of commands are checked too. Raises
    `ProfileError` with all problems of all sources.
    """
    problems = Problems()
    decoded = [decode(source.raw, source.file, problems) for source in sources]
    texts = [text for text in decoded if text is not None]
    problems.texts.extend(texts)
    roots = [root for text in texts if (root := _root(text, problems)) is not None]
    given = [read_override(text, problems) for text in overrides]
    changes = [override for override in given if override is not None]
    heads = [_head(root, changes, problems) for root in roots]
    entries = [entry for root in roots for entry in _entries(root, problems)]
    named = apply_to_faults(changes, name_entries(entries, problems), problems)
    written = [read_rule(entry, problems) for entry in named]
    check_rules(written, table, problems)
    problems.raise_if_any()
    joined = "\n---\n".join(text.text for text in texts)
    return Profile(
        name="+".join(source.name for source in sources),
        description=_joined(head.description for head in heads),
        healthy=_joined(head.healthy for head in heads),
        seed=next((head.seed for head in reversed(heads) if head.seed is not None), None),
        rules=tuple(entry.rule for entry in written if entry.rule is not None),
        source=joined,
        sha256=hashlib.sha256(joined.encode()).hexdigest(),
    )


def _root(text: Text, problems: Problems) -> Node | None:
    """The profile's mapping; None if it is none (then a problem says why)."""
    before = len(problems.found)
    root = compose(text, problems)
    if root is None:
        if len(problems.found) == before:
            problems.add(text.place(1, 1), f"empty: {_NEEDS}")
        return None
    if not isinstance(root.value, dict):
        problems.add(root.at, f"expected a mapping, got {shown(root.plain())}: {_NEEDS}")
        return None
    return root


_NEEDS = "a profile needs 'faults' (`faults: []` for none)"
_FIELDS = (*settings_of(Head), "faults")


def _head(root: Node, changes: Sequence[Override], problems: Problems) -> Head:
    refuse_unknown(root, _FIELDS, "a profile", problems, {"in an entry of 'faults'": ENTRY_FIELDS})
    if "faults" not in root.fields:
        problems.add(root.at, _NEEDS)
    head, _ = read_settings(Head, apply_to_head(changes, root), "a profile", problems)
    return head or Head()


def _entries(root: Node, problems: Problems) -> Sequence[Node]:
    field = root.fields.get("faults")
    if field is None or field.node.value is None:
        return ()
    if isinstance(field.node.value, list):
        return field.node.value
    problems.add(field.node.at, f"faults: expected a list, got {shown(field.node.plain())}")
    return ()


def _joined(texts: Iterable[str | None]) -> str:
    """Each once: an override of `description` stands in every profile."""
    return "\n".join(dict.fromkeys(text for text in texts if text))
