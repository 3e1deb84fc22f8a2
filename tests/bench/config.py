"""The configuration of each peer, for one listening and one upstream port.

Takes port numbers and a folder, gives the text of configuration files.
"""

import json
import resource
from pathlib import Path
from typing import Any

from tests.bench.process import HOST

# Every proxy takes two descriptors a connection, and some open files besides.
OPEN_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
MAX_CONNECTIONS = min(10_000, (OPEN_FILES - 200) // 2)
NGINX_STREAM_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")

# Faults for commands that no load sends, as a suite has them that is about other commands.
NOTHING = """\
description: Faults that no command of the load can match.
healthy: Nothing is to be seen.
faults:
  - fault: drop_write
    match: {commands: [RPUSH, LPUSH]}
    tell: error
  - fault: disconnect
    match: {commands: [HSET, EXPIRE]}
    at: after_apply
    how: reset
  - fault: latency
    match: {commands: [ZADD]}
    at: before_forward
    delay: 50ms
"""
# A fault for the load's commands and keys that it never uses: each command's key must be looked at.
NO_KEY = """\
description: A fault for keys that the load never uses.
healthy: Nothing is to be seen.
faults:
  - fault: disconnect
    match: {commands: [SET, GET], keys: "chat:*"}
    at: after_apply
    how: reset
"""
# The cheapest fault there is, so that what is measured is the choosing and the bookkeeping.
ONE_PERCENT = """\
description: One command in a hundred waits for no time at all.
healthy: Nothing is to be seen.
seed: 7
faults:
  - fault: latency
    match: {commands: [SET, GET]}
    when: {chance: 1%}
    at: before_forward
    delay: 0ms
"""


def haproxy(listen: int, upstream: int) -> str:
    """TCP mode, one thread."""
    return f"""\
global
    nbthread 1
    maxconn {MAX_CONNECTIONS}
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen redis
    bind {HOST}:{listen}
    server s {HOST}:{upstream}
"""


def nginx(listen: int, upstream: int, folder: Path) -> str:
    """The stream module, one process."""
    return f"""\
load_module {NGINX_STREAM_MODULE};
daemon off;
master_process off;
pid {folder}/nginx.pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 19900; }}
stream {{
    access_log off;
    server {{
        listen {HOST}:{listen} backlog=4096;
        proxy_pass {HOST}:{upstream};
        proxy_timeout 1h;
        tcp_nodelay on;
    }}
}}
"""


def nutcracker(listen: int, upstream: int) -> str:
    """Aware of the protocol, one upstream connection."""
    return f"""\
redis:
  listen: {HOST}:{listen}
  hash: fnv1a_64
  distribution: ketama
  redis: true
  timeout: 20000
  backlog: 4096
  auto_eject_hosts: false
  server_connections: 1
  servers:
   - {HOST}:{upstream}:1
"""


def _envoy(listen: int, upstream: int, network_filter: dict[str, Any]) -> str:
    # The default circuit breaker allows 1024 upstream connections: idle ones would be refused.
    limits = {"max_connections": 20000, "max_pending_requests": 20000, "max_requests": 1000000}
    address = {"socket_address": {"address": HOST, "port_value": listen}}
    endpoint = {"address": {"socket_address": {"address": HOST, "port_value": upstream}}}
    cluster = {
        "name": "redis",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [limits]},
        "load_assignment": {
            "cluster_name": "redis",
            "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}],
        },
    }
    listener = {"address": address, "filter_chains": [{"filters": [network_filter]}]}
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}})


_FILTERS = "type.googleapis.com/envoy.extensions.filters.network"


def envoy_tcp(listen: int, upstream: int) -> str:
    """The tcp_proxy filter."""
    settings = {
        "@type": f"{_FILTERS}.tcp_proxy.v3.TcpProxy",
        "stat_prefix": "tcp",
        "cluster": "redis",
        "idle_timeout": "0s",
    }
    return _envoy(listen, upstream, {"name": "tcp", "typed_config": settings})


def envoy_redis(listen: int, upstream: int) -> str:
    """The redis_proxy filter with a delay fault at 0 %: the cost of being able to inject."""
    fault = {
        "fault_type": "DELAY",
        "delay": "0.001s",
        "commands": ["GET", "SET"],
        "fault_enabled": {"default_value": {"numerator": 0, "denominator": "HUNDRED"}},
    }
    settings = {
        "@type": f"{_FILTERS}.redis_proxy.v3.RedisProxy",
        "stat_prefix": "redis",
        "settings": {"op_timeout": "60s"},
        "prefix_routes": {"catch_all_route": {"cluster": "redis"}},
        "faults": [fault],
    }
    return _envoy(listen, upstream, {"name": "redis", "typed_config": settings})


def toxiproxy(listen: int, upstream: int) -> str:
    """One proxy without a toxic."""
    proxy = {
        "name": "redis",
        "listen": f"{HOST}:{listen}",
        "upstream": f"{HOST}:{upstream}",
        "enabled": True,
    }
    return json.dumps([proxy])


def redfi() -> str:
    """One rule, for a command that is never sent."""
    return json.dumps({"rules": [{"name": "r", "delay": 1, "command": "FLUSHALL"}]})


def redfi_fork() -> str:
    """One rule, for a command that is never sent."""
    return json.dumps({"requestRules": [{"name": "r", "delay": 1, "command": "flushall"}]})
