"""Recipes for where chaosproxy runs: each is read by its own tool or schema, and the monitoring is tried for real.

Takes the files beside this one; gives proof that they are what they say, and that a Prometheus finds what the dashboard asks.
"""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from functools import reduce
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from chaosproxy.profile import names
from tests.proxying import start_proxy, wait_for
from tests.servers import free_port

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RULES = """
faults:
- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 2ms}
- {fault: reply, name: rare, match: {commands: INCR}, when: {every: 3}, at: before_forward, error: LOADING}
"""


def read(name):
    return yaml.safe_load((HERE / name).read_text())


def need(module):
    if find_spec(module) is None:
        pytest.skip(f"needs {module}: pip install '.[test]'")


def call(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("compose.yaml", "vendor.compose-spec"),
        ("github-workflow.yaml", "vendor.github-workflows"),
        ("gitlab-ci.yaml", "vendor.gitlab-ci"),
    ],
)
def test_schemas(file, schema):
    """What Compose, GitHub and GitLab read is valid to their own schemas."""
    need("check_jsonschema")
    options = ("--builtin-schema", schema)
    if "gitlab" in file:
        options += ("--data-transform", "gitlab-ci", "--regex-variant", "nonunicode")
    done = call(sys.executable, "-m", "check_jsonschema", *options, str(HERE / file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes():
    """The pod is valid, strictly, to the first version with native sidecars and to a new one."""
    need("kubernetes_validate")
    import kubernetes_validate

    pod = read("kubernetes.yaml")
    for version in ("1.29", "1.34"):
        kubernetes_validate.validate(pod, version, strict=True)


def test_kubernetes_sidecar():
    """It is ready before the application starts, may do nothing it need not, and is probed where it answers anybody."""
    pod = read("kubernetes.yaml")["spec"]
    (sidecar,) = pod["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert pod["securityContext"]["runAsNonRoot"]
    assert sidecar["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    probes = {name: probe["httpGet"]["path"] for name, probe in sidecar.items() if "Probe" in name}
    assert probes == {
        "startupProbe": "/readyz",
        "readinessProbe": "/readyz",
        "livenessProbe": "/healthz",
    }
    assert any(each["name"] == "CHAOSPROXY_CONTROL_TOKEN" for each in sidecar["env"])


def variables(value):
    """All settings of chaosproxy in a recipe, by name, wherever they stand."""
    found = {}
    if isinstance(value, dict):
        if str(value.get("name", "")).startswith("CHAOSPROXY_"):
            found[value["name"]] = value.get("value", "")
        for key, each in value.items():
            if str(key).startswith("CHAOSPROXY_"):
                found[key] = each
            found |= variables(each)
    elif isinstance(value, list):
        for each in value:
            found |= variables(each)
    return found


@pytest.mark.parametrize(
    "file", ["compose.yaml", "kubernetes.yaml", "github-workflow.yaml", "gitlab-ci.yaml"]
)
def test_settings(file):
    """Every variable is one that `run` reads, every profile ships, and control beyond loopback has a token."""
    helped = call(sys.executable, "-m", "chaosproxy", "run", "--help", cwd=ROOT).stdout
    found = variables(read(file))
    assert set(found) <= set(re.findall(r"CHAOSPROXY_\w+", helped))
    assert found["CHAOSPROXY_PROFILE"] in names()
    assert "CHAOSPROXY_CONTROL_TOKEN" in found
    text = (HERE / file).read_text()
    lists = re.findall(r"(?i)profile: \[(.*)\]", text)
    assert {name for each in lists for name in each.split(", ")} <= set(names())


@pytest.mark.parametrize("file", ["github-workflow.yaml", "gitlab-ci.yaml"])
def test_commands(file):
    """Each `chaosproxy exec` in a recipe has options that there are."""
    helped = call(sys.executable, "-m", "chaosproxy", "exec", "--help", cwd=ROOT).stdout
    lines = re.findall(r"chaosproxy exec (.*) -- ", (HERE / file).read_text())
    assert lines
    for line in lines:
        assert set(re.findall(r"--[a-z-]+", line)) <= set(re.findall(r"--[a-z-]+", helped))


def promtool():
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool; on Debian: apt-get install prometheus")
    return tool


def test_prometheus_files():
    """The scrape configuration and the rules are valid, and each alert is raised when it should be and not before."""
    tool = promtool()
    for words in (("check", "config", "prometheus.yaml"), ("check", "rules", "alerts.yaml")):
        done = call(tool, *words, cwd=HERE)
        assert done.returncode == 0, done.stdout + done.stderr
    done = call(tool, "test", "rules", "alerts-test.yaml", cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {each["alertname"] for each in read("alerts-test.yaml")["tests"][0]["alert_rule_test"]}
    assert tested == {rule["alert"] for rule in read("alerts.yaml")["groups"][0]["rules"]}


def queries():
    """What the dashboard asks: title and expression, its variables filled in."""
    dashboard = json.loads((HERE / "grafana-dashboard.json").read_text())
    asked = [
        (panel["title"], each["expr"]) for panel in dashboard["panels"] for each in panel["targets"]
    ]
    asked += [(each["name"], each["expr"]) for each in dashboard["annotations"]["list"]]
    filled = {"$instance": ".*", "$__rate_interval": "5s"}
    for title, expression in asked:
        text = reduce(lambda text, each: text.replace(*each), filled.items(), expression)
        assert "$" not in text, text
        yield title, text


def test_dashboard():
    """Panels have numbers of their own and do not lie on each other."""
    panels = json.loads((HERE / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert all(0 <= x < 24 for x, _ in cells)


@pytest.mark.timeout(180)
def test_a_real_prometheus(redis70, tmp_path):
    """It scrapes a real run by this configuration, and every query of the dashboard and of the rules has an answer."""
    if shutil.which("prometheus") is None:
        pytest.skip("needs prometheus; on Debian: apt-get install prometheus")
    with (
        start_proxy(redis70.url, RULES) as proxy,
        prometheus(proxy, tmp_path) as url,
        busy(proxy),
    ):
        wait_for(lambda: result(url, "up{job='chaosproxy'} == 1"), "a scrape", 60)
        for title, expression in queries():
            wait_for(lambda e=expression: result(url, e), f"{title}: {expression}", 60)
        (group,) = ask(url, "rules")["groups"]
        assert {rule["health"] for rule in group["rules"]} <= {"ok", "unknown"}
        # A busy machine may be late for a scrape, not for all of them.
        wait_for(lambda: seen(url) == ("up", ""), "a scrape without an error", 60)


@contextmanager
def prometheus(proxy, folder):
    """Start a Prometheus with this configuration, only faster and at the proxy's own address; gives its URL."""
    config = (HERE / "prometheus.yaml").read_text()
    assert config.count("127.0.0.1:9380") == 1
    config = config.replace("127.0.0.1:9380", proxy.control.removeprefix("http://"))
    (folder / "prometheus.yaml").write_text(config.replace("15s", "500ms"))
    shutil.copy(HERE / "alerts.yaml", folder)
    port = free_port()
    command = ["prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data"]
    command += ["--log.level=error", f"--web.listen-address=127.0.0.1:{port}"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@contextmanager
def busy(proxy):
    """Have commands come all the while."""
    stop = threading.Event()
    traffic = threading.Thread(target=keep_busy, args=(proxy, stop))
    traffic.start()
    try:
        yield
    finally:
        stop.set()
        traffic.join()


def keep_busy(proxy, stop):
    while not stop.is_set():
        with proxy.connect() as client:
            for word in ("GET", "INCR", "INCR", "INCR"):
                client.raw(word, "n")
        time.sleep(0.05)


def ask(url, what, **query):
    """Ask Prometheus's own API; None while it does not answer."""
    try:
        with urllib.request.urlopen(
            f"{url}/api/v1/{what}?{urllib.parse.urlencode(query)}", timeout=10
        ) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def seen(url):
    """How Prometheus finds the proxy: its health and what went wrong last."""
    said = ask(url, "targets")
    return said and next((each["health"], each["lastError"]) for each in said["activeTargets"])


def result(url, expression):
    said = ask(url, "query", query=expression)
    return said and [each for each in said["result"] if each["value"][1] != "NaN"]
