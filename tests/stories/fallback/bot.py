"""A support bot on LangChain, as it was found and repaired: one pod of it, with a turn in each line of its input.

Takes JSON lines, `{"do": "turn", "app": "buggy", "url": "redis://…", "session": "s", "id": "t1", "text": "Hi", "knows": 0, "sent": 1.5}`, `knows`
being how many messages the customer's page shows; gives a line for each: the answer and what the memory held before it, or
`error`; and how many calls of the memory there were, and which exceptions. It needs langchain, langchain-community and redis.
"""

import json
import os
import time

import pod
import redis
from langchain_community.chat_message_histories import RedisChatMessageHistory
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

try:
    from langchain.memory import ConversationBufferMemory
except ImportError:
    ConversationBufferMemory = None


def counted(operation):
    """Count the calls of an operation of the memory and the exceptions that it raises."""

    def counting(self, *args):
        with pod.counted(operation.__name__):
            return operation(self, *args)

    return counting


def dumped(message: BaseMessage) -> str:
    # Emoji as themselves: they take a third of the room.
    return json.dumps(message_to_dict(message), ensure_ascii=False)


# --- as it was found ------------------------------------------------------------------------------


class OneValue(RedisChatMessageHistory):
    """The whole conversation under one key as one value: "no turn can be half written"."""

    @counted
    def read(self) -> list[BaseMessage]:
        return messages_from_dict(json.loads(self.redis_client.get(self.key) or b"[]"))

    @counted
    def write(self, messages: list[BaseMessage]) -> None:
        self.redis_client.set(self.key, f"[{','.join(map(dumped, messages))}]")

    @property
    def messages(self) -> list[BaseMessage]:
        return self.read()

    def add_messages(self, messages) -> None:
        # Whoever else writes meanwhile is overwritten.
        self.write([*self.read(), *messages])


class Buggy:
    """Answers in any case."""

    def history(self, url: str, session: str, knows: int) -> BaseChatMessageHistory:
        try:
            history = OneValue(session, f"{url}?socket_timeout=0.5")
            history.read()
        except Exception:  # noqa: BLE001 - "a bot without memory is better than none"
            return InMemoryChatMessageHistory()
        return history

    def acknowledge(self, history: BaseChatMessageHistory) -> None:
        """Nothing is asked: it was answered."""


# --- repaired -------------------------------------------------------------------------------------


class Forgotten(Exception):  # noqa: N818 - named after what has happened
    """The memory holds less than was acknowledged. The customer is not taken for a new one."""


class Unreadable(Exception):  # noqa: N818 - as above
    """What the memory holds cannot be read. That is not the same as nothing."""


#: One step for a whole turn, which does nothing if it has been done: so it can be tried again.
ADD = """
    if redis.call('LPOS', KEYS[1], ARGV[1]) then return 0 end
    return redis.call('LPUSH', KEYS[1], unpack(ARGV))
"""
#: How long what has not worked is tried again, and how soon, in seconds.
PATIENCE, PAUSE = 8.0, 0.05
PASSES = (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError)


def again(operation):
    """Try again what fails because Redis is away, for as long as a customer waits; then raise."""

    def trying(*args):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return operation(*args)
            except PASSES:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)

    return trying


class Appended(RedisChatMessageHistory):
    """LangChain's own list, to which a turn is added as a whole, once."""

    @again
    @counted
    def read(self) -> list[BaseMessage]:
        try:
            return super().messages
        except (AttributeError, TypeError, ValueError) as error:
            # pydantic reads again when a property raises AttributeError, and nobody hears of it.
            raise Unreadable(f"{self.session_id}: {error}") from error

    @again
    @counted
    def add(self, messages: list[BaseMessage]) -> None:
        self.redis_client.eval(ADD, 1, self.key, *map(dumped, messages))

    @property
    def messages(self) -> list[BaseMessage]:
        return self.read()

    #: Why the last turn was not stored.
    lost: Exception | None = None

    def add_messages(self, messages) -> None:
        try:
            self.add(messages)
        except Exception as error:
            self.lost = error
            raise


class Repaired:
    """Answers from the memory, or says that it cannot."""

    @again
    def connect(self, url: str, session: str) -> Appended:
        history = Appended(session, f"{url}?socket_timeout=2")
        if not hasattr(history, "redis_client"):
            # RedisChatMessageHistory logs what went wrong and goes on without.
            raise redis.ConnectionError("no connection for a history")
        return history

    def history(self, url: str, session: str, knows: int) -> BaseChatMessageHistory:
        history = self.connect(url, session)
        if len(history.read()) < knows:
            raise Forgotten(f"{session}: the customer has seen {knows} messages")
        return history

    def acknowledge(self, history: Appended) -> None:
        # RunnableWithMessageHistory logs what went wrong while it stored the turn, and goes on.
        if history.lost:
            raise history.lost


APPS = {"buggy": Buggy(), "repaired": Repaired()}

# --- both -----------------------------------------------------------------------------------------


def answer(text: str) -> str:
    """Give the model's answer; it thinks for 20 ms."""
    time.sleep(0.02)
    return f"Zu „{text}“: gern geschehen 🙂"


def with_buffer(history: BaseChatMessageHistory, human: HumanMessage) -> tuple[int, str]:
    """Make a turn with ConversationBufferMemory; gives how many messages there were, and the answer."""
    memory = ConversationBufferMemory(chat_memory=history, return_messages=True)
    held = len(memory.load_memory_variables({})["history"])
    said = answer(human.content)
    memory.chat_memory.add_messages([human, AIMessage(said, id=f"{human.id}-answer")])
    return held, said


def with_runnable(history: BaseChatMessageHistory, human: HumanMessage) -> tuple[int, str]:
    """Make it with what came after that, RunnableWithMessageHistory."""
    held = []

    def model(given):
        held.append(len(given["history"]))
        (asked,) = given["input"]
        return AIMessage(answer(asked.content), id=f"{asked.id}-answer")

    chain = RunnableWithMessageHistory(
        RunnableLambda(model),
        lambda session_id: history,
        input_messages_key="input",
        history_messages_key="history",
    )
    config = {"configurable": {"session_id": "this"}}
    said = chain.invoke({"input": [human]}, config).content
    return held[0], said


def turn(app: str, url: str, session: str, id: str, text: str, knows: int) -> dict:  # noqa: A002
    history = APPS[app].history(url, session, knows)
    make = with_buffer if ConversationBufferMemory else with_runnable
    held, said = make(history, HumanMessage(text, id=id))
    APPS[app].acknowledge(history)
    return {"held": held, "answer": said}


def reload(app: str, url: str, session: str) -> dict:
    """Read the conversation in a process that has never seen it."""
    ours, its = os.pipe()
    if os.fork() == 0:
        kind = OneValue if app == "buggy" else Appended
        texts = [message.content for message in kind(session, url).messages]
        os.write(its, json.dumps(texts).encode())
        os._exit(0)
    os.close(its)
    with os.fdopen(ours) as pipe:
        texts = json.loads(pipe.read())
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    return {"texts": texts}


if __name__ == "__main__":
    pod.serve({"turn": turn, "reload": reload})
