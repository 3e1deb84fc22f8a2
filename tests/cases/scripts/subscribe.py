"""Subscribes and listens for two seconds, while others publish. Takes ports, and how: sync, asyncio, or watched.

Says whether any message arrived, and which error was raised.
"""

import asyncio
import json
import sys
import threading

import redis
import redis.asyncio

port, direct, how = sys.argv[1:]
heard, error = False, None
over = threading.Event()


def publish() -> None:
    world = redis.Redis(host="127.0.0.1", port=int(direct))
    while not over.wait(0.05):
        world.publish("news", "m")


def plain() -> bool:
    """As the documentation shows it."""
    listener = redis.Redis(host="127.0.0.1", port=int(port)).pubsub()
    listener.subscribe("news")
    assert listener.get_message(timeout=5)["type"] == "subscribe"
    threading.Thread(target=publish).start()
    return any(listener.get_message(timeout=0.1) for _ in range(20))


def watched() -> bool:
    """The repair: who hears nothing asks, and who gets no answer connects anew."""
    listener = redis.Redis(host="127.0.0.1", port=int(port)).pubsub()
    listener.subscribe("news")
    assert listener.get_message(timeout=5)["type"] == "subscribe"
    threading.Thread(target=publish).start()
    for _ in range(4):
        if listener.get_message(timeout=0.3):
            return True
        listener.ping()
        if not listener.get_message(timeout=0.3):
            listener.connection.disconnect()
            # Connects, and subscribes again.
            listener.connection.connect()
    return False


async def asynchronous() -> bool:
    listener = redis.asyncio.Redis(host="127.0.0.1", port=int(port)).pubsub()
    await listener.subscribe("news")
    assert (await listener.get_message(timeout=5))["type"] == "subscribe"
    threading.Thread(target=publish).start()
    return any([await listener.get_message(timeout=0.1) for _ in range(20)])


try:
    match how:
        case "sync":
            heard = plain()
        case "watched":
            heard = watched()
        case _:
            heard = asyncio.run(asynchronous())
except redis.RedisError as raised:
    error = type(raised).__name__
finally:
    over.set()
print(json.dumps({"heard": heard, "error": error}))
