"""What a user asks of a running proxy: to trigger a fault, to switch one off, who is connected, to cut somebody off.

Takes a Proxy, in its loop; gives what is known afterwards, as plain data.
"""

from time import monotonic
from typing import Any

from chaosproxy.core import steering
from chaosproxy.counts import Gauges
from chaosproxy.net.address import Address
from chaosproxy.net.connection import Link
from chaosproxy.net.ending import cut_off
from chaosproxy.net.proxy import Proxy


def trigger(proxy: Proxy, name: str) -> dict[str, Any]:
    """Ask a fault to act, and give its status. Raises UnknownFaultError and CannotTriggerError."""
    steering.trigger(proxy.world.engine, name, monotonic())
    proxy.steered()
    return _status(proxy, name)


def enable(proxy: Proxy, name: str, enabled: bool) -> dict[str, Any]:
    """Switch a fault on or off, and give its status. Raises UnknownFaultError."""
    steering.enable(proxy.world.engine, name, enabled)
    proxy.steered()
    return _status(proxy, name)


def _status(proxy: Proxy, name: str) -> dict[str, Any]:
    return next(each for each in proxy.world.engine.status() if each["name"] == name)


def describe(proxy: Proxy) -> list[dict[str, Any]]:
    """Give the connections that are open, in the order in which they came."""
    now = monotonic()
    return [_describe(link, now) for link in list(proxy.links.values()) if not link.ended]


def _describe(link: Link, now: float) -> dict[str, Any]:
    """What the conversation knows, with its age in seconds instead of when it was opened."""
    known = link.conversation.describe()
    age = round(now - known.pop("opened"), 3)
    return known | {"listener": link.route.name, "age": age, "connected": link.relaying}


def gauges(proxy: Proxy, lost: int) -> Gauges:
    """What is now, for the metrics; `lost`: how many events could not be written."""
    engine = proxy.world.engine
    talks = [link.conversation for link in proxy.links.values()]
    return Gauges(
        connections=len(talks),
        held_commands=sum(talk.holding for talk in talks),
        buffered_bytes=sum(talk.buffered for talk in talks),
        profile=engine.profile.name,
        seed=engine.seed,
        generation=engine.generation,
        events_lost=lost,
        upstream_up={route.name: route.up for route in proxy.routes if route.up is not None},
    )


async def add_listener(proxy: Proxy, name: str, listen: Address, server: Address) -> str:
    """Listen there too, with that server behind; give where, also where the kernel chose the port. Raises OSError."""
    route = proxy.route(name, listen, server)
    await proxy.routes.add(route)
    return str(route.address)


def remove_listener(proxy: Proxy, name: str) -> None:
    """Listen there no more, and close the connections of those who came by it."""
    proxy.routes.remove(name)
    for link in list(proxy.links.values()):
        if link.route.name == name and not link.ended:
            cut_off(link, "close")


def cut(proxy: Proxy, number: int) -> bool:
    """Reset a client's connection, and end its upstream side; False if there is none of that number."""
    link = proxy.links.get(number)
    if link is None or link.ended:
        return False
    cut_off(link, "reset")
    return True
