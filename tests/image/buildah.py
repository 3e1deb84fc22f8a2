"""Images and containers for the tests, by way of Debian's buildah, which needs no daemon.

Takes the repository; gives a built Image and Containers of it that run as the image says.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 90.0
# No kernel feature that a build machine might refuse: plain copies of files, no namespaces of its own.
_BUILDAH = ("buildah", "--storage-driver", "vfs")
_ISOLATION = ("--isolation", "chroot", "--network", "host")


def unavailable() -> str | None:
    """Give None if images can be built here, else the reason, saying what to install."""
    if shutil.which("buildah") is None:
        return "needs buildah: apt-get install buildah"
    if os.geteuid() != 0:
        return "needs root: files of several users are put into an image"
    return None


def buildah(*words: str | Path) -> str:
    """Run one command of buildah; give what it printed. A failure carries what it complained of."""
    done = subprocess.run([*_BUILDAH, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"buildah {words[0]}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Image:
    """A built image. Sizes are bytes of the layers' uncompressed archives."""

    tag: str

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return json.loads(buildah("inspect", "--type", "image", self.tag))

    @property
    def config(self) -> dict[str, Any]:
        """What a container is started with: User, Env, Entrypoint, Cmd, Healthcheck."""
        return self._facts["Docker"]["config"]

    @property
    def layers(self) -> list[int]:
        """The layers' sizes, the base's first."""
        return [layer["size"] for layer in json.loads(self._facts["Manifest"])["layers"]]

    @property
    def history(self) -> str:
        """All that is told of how it was made."""
        return json.dumps(self._facts["Docker"])

    @contextmanager
    def container(self) -> Iterator["Container"]:
        """Give a container of this image; it and what runs in it end with the block."""
        name = buildah("from", "--pull-never", self.tag)
        container = Container(self, name, Path(buildah("mount", name)))
        try:
            yield container
        finally:
            container.stop()
            buildah("rm", name)


@contextmanager
def build(base: str | None, context: Path = ROOT) -> Iterator[Image]:
    """Build the Dockerfile of a checkout, on another base where one is named."""
    tag = f"localhost/chaosproxy:test-{os.getpid()}-{context.name}".lower()
    argument = ("--build-arg", f"BASE={base}") if base else ()
    # Docker's own format: the other one has no place for a health check.
    buildah("bud", "--format", "docker", *_ISOLATION, *argument, "--tag", tag, context)
    try:
        yield Image(tag)
    finally:
        buildah("rmi", tag)


@dataclass
class Container:
    """A container: commands run in it with the image's user and environment."""

    image: Image
    name: str
    root: Path
    process: subprocess.Popen[str] | None = None
    ready: dict[str, Any] | None = None

    def command(self, *words: str, **environment: str) -> list[str]:
        """Give the command of the host that runs `words` in the container."""
        settings = [f"--env={name}={value}" for name, value in environment.items()]
        return [*_BUILDAH, "run", *_ISOLATION, *settings, self.name, "--", *words]

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = self.command(*words, **environment)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def start(self, **environment: str) -> dict[str, Any]:
        """Start it as the image says; give what it wrote into its ready file."""
        file = self.root / "tmp" / "ready.json"
        file.unlink(missing_ok=True)
        config = self.image.config
        words = [*config["Entrypoint"], *config["Cmd"], "--ready-file", "/tmp/ready.json"]
        self.process = subprocess.Popen(
            self.command(*words, **environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        due = time.monotonic() + START_TIMEOUT
        while not file.exists():
            if self.process.poll() is not None or time.monotonic() > due:
                self.process.terminate()
                raise RuntimeError(f"it did not start: {self.process.communicate()[0]}")
            time.sleep(0.05)
        self.ready = json.loads(file.read_text())
        return self.ready

    def stop(self) -> int | None:
        """End what was started, as an orchestrator does; give its exit status, None: not running."""
        if self.process is None:
            return None
        if self.ready is not None and self.process.poll() is None:
            # This isolation has no process numbers of its own.
            os.kill(self.ready["pid"], 15)
        try:
            output, _ = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        status, self.process, self.ready = self.process.returncode, None, None
        assert "Traceback" not in output, output
        return status
