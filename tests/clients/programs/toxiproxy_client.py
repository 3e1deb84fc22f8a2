"""toxiproxy-python against a control API: what its README shows. Takes host, port and a Redis address; prints what it saw."""

import json
import socket
import sys
import time

from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

host, port, upstream = sys.argv[1:]
server = Toxiproxy()
server.update_api_consumer(host, int(port))


def ping(proxy):
    where, _, number = proxy.listen.rpartition(":")
    with socket.create_connection((where, int(number)), 10) as link:
        began = time.monotonic()
        link.sendall(b"PING\r\n")
        return link.recv(100).decode(), time.monotonic() - began


def raised(ask):
    try:
        ask()
    except (InvalidToxic, NotFound, ProxyExists) as error:
        return type(error).__name__
    return None


proxy = server.create(upstream=upstream, name="redis")
seen = {"running": server.running(), "version": server.version().decode(), "plain": ping(proxy)[0]}
proxy.add_toxic(type="latency", attributes={"latency": 300, "jitter": 10})
seen["toxic"] = proxy.get_toxic("latency_downstream").attributes
seen["late"] = ping(proxy)[1]
proxy.destroy_toxic("latency_downstream")
seen["toxics"] = list(proxy.toxics())
with proxy.down():
    try:
        ping(proxy)
    except ConnectionRefusedError:
        seen["down"] = "refused"
seen["up"] = ping(proxy)[0]
seen["again"] = raised(lambda: server.create(upstream=upstream, name="redis"))
seen["invalid"] = raised(lambda: proxy.add_toxic(type="nope"))
seen["missing"] = raised(lambda: proxy.destroy_toxic("nope"))
server.populate([{"name": "other", "upstream": upstream, "listen": "127.0.0.1:0"}])
seen["proxies"] = sorted(server.proxies())
server.reset()
server.destroy_all()
seen["left"] = list(server.proxies())
print(json.dumps(seen))
