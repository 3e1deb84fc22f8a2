"""The same bot on LangGraph: its Redis checkpointer as it is, behind a graph of one node.

Takes and gives what bot.py does. It needs langgraph and langgraph-checkpoint-redis, and a Redis with RedisJSON and RediSearch.
"""

import time

import pod
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.redis import RedisSaver
from langgraph.graph import START, MessagesState, StateGraph


def answer(state: MessagesState) -> dict:
    time.sleep(0.02)
    return {"messages": [AIMessage(f"Zu „{state['messages'][-1].content}“: gern geschehen 🙂")]}


GRAPH = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")


def turn(app: str, url: str, session: str, id: str, text: str, knows: int) -> dict:  # noqa: A002
    config = {"configurable": {"thread_id": session}}
    with RedisSaver.from_conn_string(url) as saver:
        saver.setup()
        graph = GRAPH.compile(checkpointer=saver)
        with pod.counted("read"):
            held = graph.get_state(config).values.get("messages", [])
        with pod.counted("add"):
            after = graph.invoke({"messages": [HumanMessage(text, id=id)]}, config)
    return {"held": len(held), "answer": after["messages"][-1].content}


def reload(app: str, url: str, session: str) -> dict:
    config = {"configurable": {"thread_id": session}}
    with RedisSaver.from_conn_string(url) as saver:
        state = GRAPH.compile(checkpointer=saver).get_state(config)
    return {"texts": [message.content for message in state.values.get("messages", [])]}


if __name__ == "__main__":
    pod.serve({"turn": turn, "reload": reload}, whole=True)
