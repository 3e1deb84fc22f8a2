"""Failovers on request: what a story does to Redis in the middle of itself.

Takes a proxy's addresses; a failover begins, and a story waits until one is over.
"""

import urllib.request

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry


def until_it_serves(redis_url: str) -> None:
    """Wait until commands are answered: a failover that was under way is over."""
    patience = Retry(ConstantBackoff(0.02), 3000)
    with redis.Redis.from_url(redis_url, retry=patience) as client:
        client.get("anything")


def trigger(control: str, fault: str) -> None:
    """Have a fault begin now that waits for a request; `control` is the proxy's control address."""
    request = urllib.request.Request(f"{control}/faults/{fault}/trigger", method="POST")
    urllib.request.urlopen(request, timeout=60).close()
