"""README.md holds: its commands run, its six lines show what they say, what it names is there.

Takes README.md; gives proof that a reader who follows it sees what it promises.
"""

import ast
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaosproxy import catalogue
from chaosproxy.cli import COMMANDS, main
from chaosproxy.control.api import ROUTES
from chaosproxy.control.openapi import document
from chaosproxy.remote import Remote
from tests.proxying import serve_proxy
from tests.test_metrics import table

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
CHAOSPROXY = (sys.executable, "-m", "chaosproxy")
#: Sections that are made from the code, and what makes them.
MADE = {"faults": catalogue.markdown, "metrics": table}


def blocks(language: str) -> list[str]:
    """Give the fenced blocks in that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def marked(name: str) -> str:
    """Give the commands between the comments that mark a section for scripts."""
    pattern = rf"<!-- {name}:begin -->\n```sh\n(.*?)```\n<!-- {name}:end -->"
    (found,) = re.findall(pattern, README, re.DOTALL)
    return found


@contextmanager
def running(command: list[str], ready_file: Path, timeout: float) -> Iterator[int]:
    """Give the port of the proxy that the command starts; it ends with Ctrl-C, and well."""
    settings = {"CHAOSPROXY_LISTEN": "127.0.0.1:0", "CHAOSPROXY_CONTROL": "127.0.0.1:0"}
    process = subprocess.Popen(
        command,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        due = time.monotonic() + timeout
        while not ready_file.exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < due, "it is not ready"
            time.sleep(0.05)
        ready = json.loads(ready_file.read_text())
        yield int(ready["listen"].rpartition(":")[2])
        os.kill(ready["pid"], signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def six_lines(port: int, python: Path | str) -> subprocess.CompletedProcess[str]:
    """Run README's Python against this port."""
    (code,) = blocks("python")
    assert code.count("port=6380") == 1
    code = code.replace("port=6380", f"port={port}")
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)


def promised() -> str:
    """Give what README's Python says it prints."""
    (line,) = re.findall(r"^print\(.*\)  # (.*)$", blocks("python")[0], re.MULTILINE)
    return line


def test_something_to_run_at_once():
    """The first line that a reader can run stands within the first 45 lines."""
    assert README[: README.index("```sh\n")].count("\n") + 2 <= 45


def test_two_commands():
    """The main job and the tests are one command each, and both start from nothing but Python."""
    for section in ("demo", "tests"):
        assert marked(section).count("\n") == 1
        assert marked(section).startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_duplicate(tmp_path):
    """README's six lines of redis-py print the message twice, raise nothing, and make that event."""
    _, _, run = marked("demo").strip().rpartition(".venv/bin/chaosproxy ")
    ready_file, events = tmp_path / "proxy.json", tmp_path / "events.jsonl"
    command = [*CHAOSPROXY, *run.split(), "--ready-file", str(ready_file), "--events", str(events)]
    with running(command, ready_file, 60) as port:
        done = six_lines(port, sys.executable)
    assert (done.stdout.strip(), done.stderr) == (promised(), "")
    _, event = map(json.loads, events.read_text().splitlines())
    (shown,) = map(json.loads, blocks("json"))
    assert shown.items() <= event.items()


def test_pytest(tmp_path, redis70):
    """README's tests do what it says: the first one fails and tells why, the second one passes."""
    (code,) = blocks("py")
    (tmp_path / "test_chat.py").write_text(code)
    installed = any(each.name == "chaosproxy" for each in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "chaosproxy.pytest_plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, f"--chaos-upstream={redis70.url}", "test_chat.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED test_chat.py::test_a_message_is_stored_once" in done.stdout
    assert "lost-ack  RPUSH chat:1  -> applied, told reset: unknown" in done.stdout
    assert (
        "again: python -m pytest test_chat.py::test_a_message_is_stored_once --chaos-seed="
        in done.stdout
    )


@pytest.mark.install
@pytest.mark.timeout(600)
def test_the_first_command_from_nothing(tmp_path):
    """README's first command, in a copy of the repository and a fresh environment, is all it takes."""
    copy = tmp_path / "chaosproxy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    ready_file = tmp_path / "proxy.json"
    script = f"cd '{copy}' && {marked('demo').strip()} --ready-file '{ready_file}'"
    with running(["bash", "-c", script], ready_file, 500) as port:
        done = six_lines(port, copy / ".venv/bin/python")
    assert (done.stdout.strip(), done.stderr) == (promised(), "")


@pytest.mark.parametrize(
    "file", ["README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
)
def test_links(file):
    """What a page links to inside the repository is there."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / file).read_text())
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (ROOT / file).parent.joinpath(target).exists()] == []


def test_what_is_installed():
    """Every extra that is named is there; and it is this directory, or a place that is said, which is installed: a name may be anybody's."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    recipes = [file.read_text() for file in (ROOT / "tests/deploy").glob("*.yaml")]
    for text in (README, (ROOT / ".github/CONTRIBUTING.md").read_text(), *recipes):
        for what, named, at in re.findall(
            r"pip install (?:-e )?'([^'\[]*)\[([^\]]*)\]([^']*)'", text
        ):
            assert set(named.split(",")) <= set(extras)
            assert what == "." or (text in recipes and at.startswith(" @ git+https://git.example/"))


def test_security():
    """Each row of what strangers can and cannot do names tests, and each of these is one that pytest finds."""
    section = README.partition("\n## Security\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "|---" not in line]
    bodies = [row for row in rows if not row.endswith("| proved by |")]
    assert len(bodies) >= 15
    named = [re.findall(r"`([\w/]+\.py::\w+)`", row.rpartition(" | ")[2]) for row in bodies]
    assert [row for row, tests in zip(bodies, named, strict=True) if not tests] == []
    # Nothing else stands in that column, so that nothing there is believed unchecked.
    rest = [re.sub(r"`[\w/]+\.py::\w+`,? ?", "", row.rpartition(" | ")[2]) for row in bodies]
    assert set(rest) == {"|"}
    wanted = {f"tests/{each}" for tests in named for each in tests}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", ""),
            *("-p", "no:cacheprovider", "-p", "no:cov", *sorted(wanted)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert done.returncode == 0, done.stdout + done.stderr
    assert wanted <= found


def test_profiles():
    """Every profile that README names is shipped, and the one it writes out has no problem."""
    for name in set(re.findall(r"--profile ([a-z-]+)", README)):
        assert (ROOT / "profiles" / f"{name}.yaml").is_file(), name
    for text in blocks("yaml"):
        done = subprocess.run(
            [*CHAOSPROXY, "check", "/dev/stdin"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_options():
    """Every option that README names is in a command's help: in that one's where it is written out."""
    known = {name: options_of(name) for name in COMMANDS}
    for name, line in re.findall(r"chaosproxy ([a-z]+)(.*)", "\n".join(blocks("sh"))):
        assert name in COMMANDS
        ours = line.partition(" -- ")[0]
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", ours)) <= known[name], line
    # Those of the pytest plugin are not the command's.
    said = {each for each in re.findall(r"`(--[a-z-]+)", README) if not each.startswith("--chaos-")}
    assert len(said) > 5
    assert said - set().union(*known.values()) - {"--help"} == set()


def options_of(name: str) -> set[str]:
    """Give the options that a command's help names."""
    helped = CliRunner().invoke(main, [name, "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z-]+", helped.stdout))


def test_curl(redis70):
    """README's requests over HTTP are answered as it says, and name every route that changes something."""
    manual = "\n- {fault: latency, name: my-manual-fault, when: {trigger: manual}, at: after_apply, delay: 1ms}\n"
    with serve_proxy(redis70.url, f"faults: {manual}") as proxy:
        asked = []
        for line in re.findall(r"^curl (.*)$", "\n".join(blocks("sh")), re.MULTILINE):
            words = shlex.split(line)
            if "my-manual-fault" in line:
                proxy.use(f"faults: {manual}")
            url = next(word for word in words if word.startswith("http://127.0.0.1:9380/"))
            path = url.removeprefix("http://127.0.0.1:9380").replace("wait=5s", "wait=5ms")
            method = words[words.index("-X") + 1] if "-X" in words else "GET"
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            asked.append(f"{method} {path.partition('?')[0]}")
            if path == "/events/stream":
                continue  # it does not end
            Remote(proxy.control).ask(method, path, body)
        assert {"PUT /profile", "DELETE /profile", "GET /events"} <= set(asked)


def reasons() -> set[str]:
    """Give the words with which the core, and who lets clients in, leave a match alone, as far as they stand where that is done."""
    done = {"skip", "drop", "abandon", "gone", "hand_over", "let_pass", "_let_pass", "_give_up", "_drop_before", "_finish"}  # fmt: skip
    found = set()
    for file in (ROOT / "chaosproxy/core").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in done:
                    words = [each for argument in node.args for each in ast.walk(argument)]
                case ast.Return(value=ast.expr() as value) if file.name == "when.py":
                    words = list(ast.walk(value))
                case _:
                    continue
            found |= {each.value for each in words if isinstance(each, ast.Constant)}
    # The others say what became of the command.
    words = {each for each in found if isinstance(each, str) and re.fullmatch("[a-z_]+", each)}
    return words - {"ok", "no", "unknown"}


def test_reasons():
    """README explains each word that says why a match was left alone, and no word that the code has not."""
    table = README.partition("| `reason` | why the match was left alone |\n")[2].partition("\n\n")[
        0
    ]
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*", table, re.MULTILINE))))
    code = "".join(file.read_text() for file in (ROOT / "chaosproxy/core").glob("*.py"))
    assert reasons() - told == set()
    assert {each for each in told if f'"{each}"' not in code} == set()


def test_events():
    """README explains each field that an event may have, and each word that three of them are; these are all."""
    table = README.partition("An event tells one fault's part in it:\n")[2].partition("\n## ")[0]
    shape = document(ROUTES)["components"]["schemas"]["Event"]["properties"]
    words = {word for each in shape.values() for word in each.get("enum", ())}
    assert set(re.findall(r"`(\w+)`", table)) == set(shape) | words | {"chance"}


def renewed() -> str:
    """Give README with its tables of faults and metrics as the code has them."""
    text = README
    for name, make in MADE.items():
        section = re.compile(rf"(?<=<!-- {name}:begin -->\n).*(?=<!-- {name}:end -->)", re.DOTALL)
        text, times = section.subn(lambda _, make=make: make(), text)
        assert times == 1
    return text


def test_tables():
    """README's tables of faults and of metrics are the code's own; `python -m tests.test_readme` renews them."""
    assert renewed() == README


if __name__ == "__main__":
    (ROOT / "README.md").write_text(renewed())
