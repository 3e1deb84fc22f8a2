"""The container image is built, looked at, and run as its own user in front of a real server.

Takes CHAOSPROXY_BASE_IMAGE, the base to build on where the Dockerfile's own cannot be pulled; gives
proof that the image does the main job and carries nothing that it does not need.
"""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import AF_INET, SOCK_STREAM, socket

import pytest
import redis

from tests.image import buildah
from tests.image.buildah import Image
from tests.servers import free_port

pytestmark = [pytest.mark.image, pytest.mark.timeout(600)]

MIB = 1024 * 1024
EVERYWHERE, LOOPBACK = "00000000", "0100007F"


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    reason = buildah.unavailable()
    if reason is not None:
        pytest.skip(reason)
    with buildah.build(os.environ.get("CHAOSPROXY_BASE_IMAGE")) as built:
        yield built


def listens_on(pid: int, port: int) -> set[str]:
    """Which IPv4 addresses (hexadecimal, as the kernel lists them) accept connections at `port`."""
    found = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        address, number = local.split(":")
        if state == "0A" and int(number, 16) == port:
            found.add(address)
    return found


def test_what_it_is_started_with(image):
    """Not root and visibly so, the proxy as its entry, and a health check that needs no shell."""
    config = image.config
    user, _, group = config["User"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert (config["Entrypoint"], config["Cmd"]) == (["chaosproxy"], ["run"])
    assert config["Healthcheck"]["Test"] == ["CMD", "python", "-m", "chaosproxy.healthcheck"]
    assert "CHAOSPROXY_LISTEN=0.0.0.0:6380" in config["Env"]
    assert set(config["ExposedPorts"]) == {"6380/tcp", "9380/tcp"}


def test_small(image):
    """All that is laid on the base is one layer of at most 32 MiB: half of it is uvloop."""
    base = os.environ.get("CHAOSPROXY_BASE_IMAGE")
    layers = image.layers
    if base:
        assert len(layers) == len(Image(base).layers) + 1
    assert layers[-1] <= 32 * MIB


def test_nothing_but_the_proxy(image):
    """No installer, no test, nothing that its user could change; but the shipped profiles."""
    with image.container() as container:
        home = container.root / "opt/chaosproxy"
        files = list(home.rglob("*"))
        names = {path.name for path in files}
        assert not names & {"pip", "setuptools", "wheel", "hatchling", "tests"}
        assert "lost-ack.yaml" in names
        assert [
            path for path in files if not path.is_symlink() and path.stat().st_mode & 0o022
        ] == []
        assert {path.lstat().st_uid for path in files} == {0}


def test_as_its_own_user(image):
    """A command in the container runs as the user that the image names."""
    with image.container() as container:
        done = container.run("python", "-c", "import os; print(os.getuid(), os.getgid())")
        assert done.stdout.strip().replace(" ", ":") == image.config["User"]


@pytest.mark.parametrize("upstream", ["server", "embedded"])
def test_main_job(image, upstream, redis70):
    """Through the container a lost acknowledgement is stored twice, and its health check sees it.

    Stopped as an orchestrator stops it, it ends with status 0, and the health check says so.
    """
    control = f":{free_port()}"
    with image.container() as container:
        ready = container.start(
            CHAOSPROXY_UPSTREAM=redis70.url if upstream == "server" else upstream,
            CHAOSPROXY_LISTEN="0.0.0.0:0",
            CHAOSPROXY_CONTROL=control,
            CHAOSPROXY_PROFILE="lost-ack",
        )
        port = int(ready["listen"].rpartition(":")[2])
        assert listens_on(ready["pid"], port) == {EVERYWHERE}
        with redis.Redis(host="127.0.0.1", port=port, decode_responses=True) as client:
            assert client.rpush("chat:1", "Hello") == 2
            assert client.lrange("chat:1", 0, -1) == ["Hello", "Hello"]
        kind, *check = image.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        # It waits for an answer no longer than an orchestrator would, and is asked again as by one.
        said = []

        def alive():
            said.append(container.run(*check, CHAOSPROXY_CONTROL=control))
            return said[-1].returncode == 0

        wait_until(alive, 60)
        assert (said[-1].returncode, said[-1].stderr) == (0, "")
        assert container.stop() == 0
        dead = container.run(*check, CHAOSPROXY_CONTROL=control)
        assert dead.returncode == 1
        assert "refused" in dead.stderr


@pytest.mark.parametrize(
    ("token", "address"), [({}, LOOPBACK), ({"CHAOSPROXY_CONTROL_TOKEN": "secret"}, EVERYWHERE)]
)
def test_control_opens_up_with_a_token(image, redis70, token, address):
    """As the image sets it, control is for the container alone; a token opens it to the network."""
    port = free_port()
    assert "CHAOSPROXY_CONTROL=:9380" in image.config["Env"]
    with image.container() as container:
        ready = container.start(
            CHAOSPROXY_UPSTREAM=redis70.url,
            CHAOSPROXY_LISTEN="127.0.0.1:0",
            CHAOSPROXY_CONTROL=f":{port}",
            **token,
        )
        assert listens_on(ready["pid"], port) == {address}


@pytest.mark.parametrize("upstream", ["server", "embedded"])
def test_read_only(image, redis70, upstream):
    """With nothing that can be written (an embedded server wants a /tmp), and no capability, it does the main job."""
    port, control = free_port(), free_port()
    with image.container() as container:
        root = str(container.root)
        tmp = f"mount -t tmpfs tmpfs {root}/tmp && " if upstream == "embedded" else ""
        environment = {
            **dict(each.split("=", 1) for each in image.config["Env"]),
            "CHAOSPROXY_UPSTREAM": redis70.url if upstream == "server" else upstream,
            "CHAOSPROXY_LISTEN": f"127.0.0.1:{port}",
            "CHAOSPROXY_CONTROL": f"127.0.0.1:{control}",
            "CHAOSPROXY_PROFILE": "lost-ack",
        }
        settings = shlex.join(f"{name}={value}" for name, value in environment.items())
        words = shlex.join([*image.config["Entrypoint"], *image.config["Cmd"]])
        # In a file system of this process alone, so that it is gone with it.
        script = (
            f"mount --bind {root} {root} && mount --rbind /dev {root}/dev && "
            f"mount -o remount,bind,ro {root} && {tmp}"
            f"exec setpriv --no-new-privs chroot --userspec={image.config['User']} {root} env -i {settings} {words}"
        )
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", script], stderr=subprocess.PIPE, text=True
        )
        try:
            wait_until(lambda: process.poll() is not None or answers(port), 90)
            assert process.poll() is None, process.stderr.read()
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert re.search(r"CapEff:\t0+\n", status)
            assert re.search(r"CapPrm:\t0+\n", status)
            assert re.search(r"NoNewPrivs:\t1\n", status)
            with redis.Redis(host="127.0.0.1", port=port, decode_responses=True) as client:
                assert client.rpush("chat:1", "Hello") == 2
                assert client.lrange("chat:1", 0, -1) == ["Hello", "Hello"]
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
            said = process.communicate()[1]
        assert "Traceback" not in said


#: What lies about in checkouts.
STRAY = (
    ".env",
    ".netrc",
    ".git/config",
    "id_rsa",
    "tests/secrets.yaml",
    "chaosproxy/.env",
    "chaosproxy/control/token.pem",
    "chaosproxy/server.key",
    "profiles/.secret.yaml",
    "profiles/.env",
)


def test_no_secret_in_it(tmp_path):
    """Nothing that lies about in a checkout is in a layer, nor has the image a setting that looks like one, nor a file with rights."""
    reason = buildah.unavailable()
    if reason is not None:
        pytest.skip(reason)
    context = tmp_path / "checkout"
    for name in ("chaosproxy", "profiles"):
        shutil.copytree(buildah.ROOT / name, context / name)
    for name in ("Dockerfile", ".dockerignore", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(buildah.ROOT / name, context / name)
    for name in STRAY:
        path = context / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hunter2-of-the-checkout\n")
    with (
        buildah.build(os.environ.get("CHAOSPROXY_BASE_IMAGE"), context) as image,
        image.container() as container,
    ):
        home = container.root / "opt/chaosproxy"
        files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
        assert len(files) > 100
        assert [path for path in files if b"hunter2" in path.read_bytes()] == []
        assert [path for path in home.rglob("*") if path.lstat().st_mode & 0o6000] == []
        assert "hunter2" not in image.history
        own = {each.partition("=")[0] for each in image.config["Env"] if "CHAOSPROXY" in each}
        assert own == {"CHAOSPROXY_LISTEN", "CHAOSPROXY_CONTROL"}
        assert not [
            each for each in image.config["Env"] if re.search("(?i)token|passw|secret|key=", each)
        ]


def answers(port: int) -> bool:
    with socket(AF_INET, SOCK_STREAM) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds, or so long."""
    due = time.monotonic() + seconds
    while not holds() and time.monotonic() < due:
        time.sleep(0.05)
