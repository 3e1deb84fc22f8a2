"""The same bot on LangGraph: its Redis checkpointer as it is, behind a graph of one node.

Takes and gives what bot.py does. It needs langgraph and langgraph-checkpoint-redis, and a Redis with RedisJSON and RediSearch.
"""

import json
import sys
import time
from collections import Counter

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.redis import RedisSaver
from langgraph.graph import START, MessagesState, StateGraph

CALLS: Counter[str] = Counter()
RAISED: Counter[str] = Counter()


def answer(state: MessagesState) -> dict:
    time.sleep(0.02)
    return {"messages": [AIMessage(f"Zu „{state['messages'][-1].content}“: gern geschehen 🙂")]}


GRAPH = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")


def counted(name: str, call, *args):
    """Count a call of the checkpointer and what it raises."""
    CALLS[name] += 1
    try:
        return call(*args)
    except Exception as error:
        RAISED[f"{name}: {type(error).__name__}"] += 1
        raise


def turn(app: str, url: str, session: str, id: str, text: str, knows: int) -> dict:  # noqa: A002
    config = {"configurable": {"thread_id": session}}
    with RedisSaver.from_conn_string(url) as saver:
        saver.setup()
        graph = GRAPH.compile(checkpointer=saver)
        held = counted("read", graph.get_state, config).values.get("messages", [])
        after = counted("add", graph.invoke, {"messages": [HumanMessage(text, id=id)]}, config)
    return {"held": len(held), "answer": after["messages"][-1].content}


def reload(app: str, url: str, session: str) -> dict:
    config = {"configurable": {"thread_id": session}}
    with RedisSaver.from_conn_string(url) as saver:
        state = GRAPH.compile(checkpointer=saver).get_state(config)
    return {"texts": [message.content for message in state.values.get("messages", [])]}


def serve() -> None:
    does = {"turn": turn, "reload": reload}
    for line in sys.stdin:
        asked = json.loads(line)
        late = time.time() - asked.pop("sent")
        for counter in (CALLS, RAISED):
            counter.clear()
        began = time.monotonic()
        try:
            said = does[asked.pop("do")](**asked)
        except Exception as error:  # noqa: BLE001 - what the customer sees, as an error page
            said = {"error": f"{type(error).__name__}: {error}"}
        said |= {
            "late": late,
            "calls": CALLS,
            "raised": RAISED,
            "slowest": time.monotonic() - began,
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    print("ready", flush=True)
    serve()
