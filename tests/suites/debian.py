"""Source packages of Debian's, of this machine's release or of another one, by this machine's own sources of packages.

Takes a package's name and a release's; gives the folder it is unpacked in. What apt knows on this machine stays as it is.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path("/etc/apt/sources.list.d/debian.sources")


def needs(*programs: str) -> None:
    """Skip, saying what to install, unless these programs are there and this is Debian."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(
                "needs Debian 12 and: apt-get install tcl redis-server redis-tools "
                f"({program} is missing)"
            )
    if not SOURCES.exists():
        pytest.skip(f"needs Debian 12: {SOURCES} says where source packages are")


def source(package: str, folder: Path, release: str | None = None) -> Path:
    """Unpack a package's source below a folder and give where; `release` None is this machine's own."""
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "parts").mkdir()
    wanted = re.sub(r"(?m)^Types:.*", "Types: deb-src", SOURCES.read_text())
    if release is not None:
        # The first paragraph is the archive's own; the others are places of this release alone.
        wanted = re.sub(r"(?m)^Suites:.*", f"Suites: {release}", wanted.split("\n\n")[0]) + "\n"
    (folder / "parts" / "source.sources").write_text(wanted)
    options = [
        *("-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={folder}/parts"),
        *("-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache", "-qq"),
    ]
    (folder / "cache").mkdir()
    for words in (("update",), ("source", "--download-only", package)):
        done = subprocess.run(
            ["apt-get", *options, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"apt-get {' '.join(words)}: {done.stderr}"
    (archive,) = folder.glob(f"{package}_*.orig.tar.gz")
    (folder / "source").mkdir()
    command = ["tar", "xzf", str(archive), "-C", str(folder / "source"), "--strip-components=1"]
    subprocess.run(command, check=True)
    return folder / "source"
