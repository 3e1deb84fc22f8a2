"""What happened, told to people: an event as a line, counts as a table.

Takes events and faults' statuses as the journal and the control API give them; gives text without control characters.
"""

import base64
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

#: A line says so many keys at most, and of each so much.
_MOST_KEYS: Final = 3
_LONGEST: Final = 60
_APPLIED: Final = {
    "yes": "applied",
    "no": "not applied",
    "undone": "undone",
    "unknown": "maybe applied",
}


def event_line(event: Mapping[str, Any]) -> str:
    """One event: number, time of day, fault, command and keys, what became of it."""
    parts = [f"#{event['n']}", str(event["at"])[11:23], str(event["fault"]), command_of(event)]
    result = f"{_APPLIED.get(event['applied'], event['applied'])}, told {event['told']}"
    if event.get("delay"):
        result += f" after {seconds(event['delay'])}"
    return printable("  ".join(parts) + f"  -> {result}: {event['outcome'].replace('_', ' ')}")


def command_of(event: Mapping[str, Any]) -> str:
    """Its command with its keys, as one would type it."""
    keys = [*event.get("keys", ()), *map(_decoded, event.get("keys_b64", ()))]
    shown = [_short(key) for key in keys[:_MOST_KEYS]]
    more = [f"(and {len(keys) - _MOST_KEYS} more)"] if len(keys) > _MOST_KEYS else []
    return printable(" ".join([str(event["command"]).replace("|", " "), *shown, *more]))


def in_force_line(now: Mapping[str, Any]) -> str:
    """What has come into force: its name, seed and generation."""
    return printable(f"profile {now['name']}, seed {now['seed']}, generation {now['generation']}")


def fault_table(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each fault with how often it matched and fired, and why it did not."""
    if not faults:
        return ["no faults"]
    rows = [("fault", "type", "matched", "fired", "skipped")]
    rows += [
        (
            printable(fault["name"]),
            printable(fault["type"]),
            str(fault["matched"]),
            str(fault["fired"]),
            printable(_skipped(fault)),
        )
        for fault in faults
    ]
    wide = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"{name:<{wide[0]}}  {kind:<{wide[1]}}  {matched:>{wide[2]}}  {fired:>{wide[3]}}  {why}".rstrip()
        for name, kind, matched, fired, why in rows
    ]


def seconds(value: float) -> str:
    """A duration as profiles write it."""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"


def shell_words(words: Sequence[str]) -> str:
    """Words as a shell reads them, in one line; what does not print is written as bash and its kin read it."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_shell_char, word)) + "'"


def _shell_char(char: str) -> str:
    if char in "'\\":
        return "\\" + char
    if char == "\n" or char.isprintable():
        return "\\n" if char == "\n" else char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def json_text(
    value: object, *, indent: int | None = None, default: Callable[[object], str] | None = None
) -> str:
    """JSON with every character as it is, but for those that do not print: escaped, they mean nothing to a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=default)
    if text.isprintable():
        return text
    return "".join(map(_json_char, text))


def _json_char(char: str) -> str:
    return char if char == "\n" or char.isprintable() else json.dumps(char)[1:-1]


def printable(text: str) -> str:
    """Nothing that moves a terminal's cursor: keys are whatever an application makes them."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _skipped(fault: Mapping[str, Any]) -> str:
    why = ", ".join(f"{reason} {count}" for reason, count in fault["skipped"].items())
    off = "" if fault.get("enabled", True) else "switched off"
    waits = f"triggered {fault['requested']}" if fault.get("requested") else ""
    return ", ".join(part for part in (why, off, waits) if part) or "-"


def _decoded(key: str) -> str:
    return base64.b64decode(key).decode("utf-8", "backslashreplace")


def _short(key: str) -> str:
    return key if len(key) <= _LONGEST else key[: _LONGEST - 1] + "…"
