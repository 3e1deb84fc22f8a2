"""A chat that keeps its messages in the session; two tabs of one session write, the second 200 ms after the first.

Takes ports, and how: session, or list, which appends to a list of its own. Says which messages are there in the end.
"""

import json
import sys
import threading
import time

import flask
import flask_session
import redis

port, _, how = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port), decode_responses=how == "list")
app = flask.Flask(__name__)
app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client)
if how == "session":
    flask_session.Session(app)


@app.get("/say/<text>")
def say(text: str) -> str:
    if how == "list":
        client.rpush("messages", text)
    else:
        flask.session["messages"] = [*flask.session.get("messages", []), text]
    return ""


@app.get("/messages")
def messages() -> list[str]:
    return client.lrange("messages", 0, -1) if how == "list" else flask.session["messages"]


browser = app.test_client()
browser.get("/say/hello")
cookie = browser.get_cookie("session")
tabs = [app.test_client(), app.test_client()]
for tab in tabs if cookie else ():
    tab.set_cookie("session", cookie.value)
first = threading.Thread(target=tabs[0].get, args=("/say/A",))
first.start()
time.sleep(0.2)
tabs[1].get("/say/B")
first.join()
print(json.dumps(browser.get("/messages").json))
