"""Where a story plays: a real server, proxies before it under the profiles asked for, apps behind those.

Takes an app's module and a profile; gives the running app. Everything runs in processes of its own, as it
would anywhere; each is started once and serves all runs, whose keys keep them apart.
"""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from tests import servers
from tests.proxying import RunningProxy, start_proxy

ROOT = Path(__file__).resolve().parent.parent.parent
STOP_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class RunningApp:
    """A story's app that answers at `url`."""

    url: str
    proxy: RunningProxy
    process: subprocess.Popen[str]


class Stage:
    """One server, and whatever was started before it; all of it ends with the stage."""

    def __init__(self, server: str = "valkey9", *server_args: str) -> None:
        reason = servers.available(server)
        if reason is not None:
            pytest.skip(reason)
        self._ends = ExitStack()
        self.server = servers.start(server, *server_args)
        self._ends.callback(self.server.stop)
        self._proxies: dict[tuple[str, ...], RunningProxy] = {}
        self._apps: dict[tuple[str, ...], RunningApp] = {}

    def proxy(self, profile: str, *args: str) -> RunningProxy:
        """Give the proxy under this profile; `args` are further options of `chaosproxy run`."""
        key = (profile, *args)
        if key not in self._proxies:
            self._proxies[key] = start_proxy(self.server.url, profile, *args)
            self._ends.callback(self._proxies[key].stop)
        return self._proxies[key]

    def app(self, story: str, app: str, proxy: RunningProxy, *args: str) -> RunningApp:
        """Give `python -m tests.stories.STORY --app APP --redis-url PROXY`; its first line has its URL."""
        key = (story, app, proxy.url, *args)
        if key not in self._apps:
            command = [sys.executable, "-m", f"tests.stories.{story}", "--app", app]
            command += ["--redis-url", proxy.url, "--port", "0", *args]
            # What it complains of goes where this process's complaints go: pytest shows it.
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            self._ends.callback(_stop, process)
            said = process.stdout.readline()
            url = said.strip().rpartition(" ")[2]
            assert url.startswith("http://"), f"{story} did not start, it said: {said!r}"
            self._apps[key] = RunningApp(url, proxy, process)
        return self._apps[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()


def _stop(process: subprocess.Popen[str]) -> None:
    """End an app and wait until it is gone."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdout.close()
