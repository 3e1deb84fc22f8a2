"""Subscribes; loses the connection; meanwhile one message is published, and another after.

Takes ports, and how: plain, or catch-up, which reads what was stored whenever a subscription is confirmed. Says which messages it got, and how often it met an error.
"""

import json
import sys
import threading

import redis

port, direct, how = sys.argv[1:]
world = redis.Redis(host="127.0.0.1", port=int(direct), decode_responses=True)


def publish() -> None:
    for text, listeners in ("m1", 0), ("m2", 1):
        while dict(world.pubsub_numsub("news"))["news"] != listeners:
            pass
        world.rpush("stored", text)
        world.publish("news", text)


client = redis.Redis(host="127.0.0.1", port=int(port), decode_responses=True)
listener = client.pubsub()
listener.subscribe("news")
assert listener.get_message(timeout=5)["type"] == "subscribe"
threading.Thread(target=publish).start()
got, errors = [], 0
while "m2" not in got:
    try:
        message = listener.get_message(timeout=5)
    except redis.ConnectionError:
        errors += 1
        continue
    if message and message["type"] == "message":
        got.append(message["data"])
    elif message and how == "catch-up":
        got += client.lrange("stored", len(got), -1)
print(json.dumps({"got": got, "errors": errors}))
