"""Whether what chaosproxy needs has known vulnerabilities, asked of all services that pip-audit knows.

Takes the environment that this runs in, with `chaosproxy[dev]` and so with all extras installed; gives each vulnerable package,
and each that no service knew anything about. Exit status: 0 none is vulnerable; 1 some are; 2 the audit itself is broken; 3
with `--required`, some could not be asked about.

pip-audit alone would not do: of a package that its service does not know it says "no known vulnerabilities found", with exit
status 0, and so it does of all of them behind a mirror that has packages and nothing else.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

ROOT = "chaosproxy"
SERVICES = ("pypi", "osv")
#: What is in its complaint when a service cannot be reached or does not do its work: its own words, and its HTTP client's.
_UNREACHABLE = re.compile(
    r"ServiceError|HTTPError|ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|JSONDecodeError|Could not connect"
    r"|timed out|requests\.exceptions\.|urllib3\.exceptions\."
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BrokenError(Exception):
    """The audit could not be made, for no fault of the network's."""


@dataclass
class Found:
    """What services have said: who is vulnerable to what, and of whom they know that nothing is known."""

    vulnerable: dict[str, list[str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def unasked(self, pins: Iterable[str]) -> list[str]:
        """Those that no service has said anything about."""
        return [pin for pin in pins if pin not in self.answered]


def canonical(name: str) -> str:
    """A project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(root: str = ROOT) -> list[str]:
    """Give `name==version` of everything installed here that a project needs, with any of its extras; itself not."""
    found: dict[str, str] = {}
    waiting = [root]
    while waiting:
        name = canonical(waiting.pop())
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            # For another platform, another Python, or an extra that nobody has asked for.
            continue
        found[name] = f"{name}=={distribution.version}"
        waiting += [
            match[0] for need in distribution.requires or () if (match := _NAME.match(need))
        ]
    found.pop(canonical(root), None)
    if not found:
        raise BrokenError(f"{root} is not installed here, or needs nothing: nothing to audit")
    return sorted(found.values())


def ask(service: str, wanted: Sequence[str], command: Sequence[str], found: Found) -> None:
    """Have one service say what it knows of these, and add that up. Raises BrokenError."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "requirements.txt")
        listed.write_text("\n".join(wanted) + "\n", "utf-8")
        options = ["--format", "json", "--progress-spinner", "off", "--no-deps", "--disable-pip"]
        done = subprocess.run(  # noqa: S603 - pip-audit, with options of our own
            [*command, "--vulnerability-service", service, *options, "--requirement", str(listed)],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        said = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines() or ["nothing"]
        if not _UNREACHABLE.search(done.stderr):
            problem = f"pip-audit -s {service}, exit status {done.returncode}: {lines[-1]}"
            raise BrokenError(problem) from None
        told = (line for line in reversed(lines) if ": " in line and _UNREACHABLE.search(line))
        found.problems.append(f"{service} gives no answer: {next(told, lines[-1]):.300}")
        return
    known = {pin.partition("==")[0]: pin for pin in wanted}
    for dependency in said:
        pin = known.get(canonical(dependency["name"]))
        if pin is None or "skip_reason" in dependency:
            continue
        found.answered.add(pin)
        ids = [vulnerability["id"] for vulnerability in dependency["vulns"]]
        if ids:
            found.vulnerable.setdefault(pin, []).extend(ids)


def audit(wanted: Sequence[str], command: Sequence[str]) -> Found:
    """Ask one service after the other, the later ones only what the earlier ones did not know. Raises BrokenError."""
    found = Found()
    for service in SERVICES:
        rest = found.unasked(wanted)
        if rest:
            ask(service, rest, command, found)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--required", action="store_true", help="fail where a service cannot be asked"
    )
    parser.add_argument("--pip-audit", nargs="+", default=[sys.executable, "-m", "pip_audit"])
    given = parser.parse_args(arguments)
    try:
        wanted = pins()
        found = audit(wanted, given.pip_audit)
    except BrokenError as error:
        print(f"the audit is broken: {error}", file=sys.stderr)
        return 2
    for pin, ids in found.vulnerable.items():
        print(f"VULNERABLE: {pin}: {', '.join(ids)}", file=sys.stderr)
    unasked = found.unasked(wanted)
    if unasked:
        bar = "!" * 80
        print(bar, *found.problems, sep="\n", file=sys.stderr)
        some = "" if len(unasked) == len(wanted) else f": {', '.join(unasked)}"
        print(
            f"NOT AUDITED: no service said anything about {len(unasked)} of {len(wanted)} packages{some}",
            "A green run says nothing about their vulnerabilities. Ask again where the service can be reached:",
            f"    python .ci/audit.py --required\n{bar}",
            sep="\n",
            file=sys.stderr,
        )
    audited = len(wanted) - len(unasked)
    print(f"{audited} of {len(wanted)} packages audited, {len(found.vulnerable)} vulnerable")
    if found.vulnerable:
        return 1
    return 3 if unasked and given.required else 0


if __name__ == "__main__":
    sys.exit(main())
