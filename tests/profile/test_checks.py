"""Rules that are well written and wrong: they can never hold, or never fire."""

from dataclasses import dataclass

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import choice


@dataclass(frozen=True)
class Push(Fault):
    """Lose a frame nobody asked for."""

    type = "push"
    positions = (Position.AFTER_APPLY,)
    outcome = "ok"
    subject = "push"
    on_pushes = True


@dataclass(frozen=True)
class Admit(Fault):
    """Turn a new connection away."""

    type = "admit"
    positions = (Position.BEFORE_FORWARD,)
    outcome = "fail"
    subject = "connection"
    command: str | None = setting(choice("command", "GET", "GTE"), "Any.", default=None)

    def names(self):
        if self.command:
            yield ("command",), self.command


@pytest.fixture(autouse=True)
def more_faults(own_faults, monkeypatch):
    for cls in (Push, Admit):
        monkeypatch.setitem(FAULTS, cls.type, cls)


def drop(fields):
    """A profile with one fault that acts on writes; `fields` begin at 5:3."""
    return f"faults:\n- fault: drop_write\n  name: x\n  tell: ok\n  {fields}"


def cut(fields):
    """A profile with one fault that acts on anything; `fields` begin at 4:3."""
    return f"faults:\n- fault: disconnect\n  at: after_apply\n  {fields}"


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ("match: {commands: [RPUHS]}", ["22: commands: unknown command RPUHS; did you mean 'RPUSH'?"]),
        ("match: {commands: rpuhs}", ["21: commands: unknown command RPUHS; did you mean 'RPUSH'?"]),
        ("match: {commands: [XYZZY]}", ["22: commands: unknown command XYZZY"]),
        ("match: {commands: [write, denyoom]}",
         ["22: commands: unknown command WRITE; did you mean '@write'?",
          "29: commands: unknown command DENYOOM; did you mean '@denyoom'?"]),
        ('match: {commands: ["@wirte"]}',
         ["22: commands: no ACL category or command flag is called @wirte; did you mean '@write'?"]),
        ('match: {commands: ["@denyom", "@hanshake"]}',
         ["22: commands: no ACL category or command flag is called @denyom; did you mean '@denyoom'?",
          ("33: commands: no ACL category or command flag is called @hanshake; "
          "did you mean '@handshake'?")]),
        ("match: {commands: [CONFIG|SETT]}",
         ["22: commands: unknown subcommand CONFIG|SETT; did you mean 'CONFIG|SET'?"]),
        ("match: {commands: [CONFGI|SET]}",
         ["22: commands: unknown command CONFGI; did you mean 'CONFIG|SET'?"]),
        # What is suggested is there: no SETNX|MASTERS.
        ("match: {commands: [SENTINEL|MASTERS]}", ["22: commands: unknown command SENTINEL"]),
        ("match: {commands: [CLIENTT|SETNAM]}",
         ["22: commands: unknown command CLIENTT; did you mean 'CLIENT|SETNAME'?"]),
        ("match: {commands: ['*']}",
         ["22: commands: unknown command *; for all of them 'commands' is left out"]),
        ("match: {commands: '@all'}",
         ["21: commands: unknown command @all; for all of them 'commands' is left out"]),
        ("match: {commands: 'GET,SET'}",
         ["21: commands: unknown command GET,SET; did you mean '[GET, SET]'?"]),
        ("match: {commands: [GET|X]}", ["22: commands: GET has no subcommands; did you mean 'GET'?"]),
        ("match: {keys: a, commands: [PING, ECHO]}",
         ["30: commands: can never hold together with 'keys', none of these has a key"]),
        ("match: {commands: PING, slots: 7}",
         ["21: commands: can never hold together with 'slots', none of these has a key"]),
        ("match: {commands: ['@connection'], key_share: 5%}",
         ["21: commands: can never hold together with 'key_share', none of these has a key"]),
        ("match: {key_share: 0%}", ["22: key_share: can never hold, that is a share without a key"]),
        ("match: {keys: a, key_share: 0}",
         ["31: key_share: can never hold, that is a share without a key"]),
        ("match: {after: {command: [MULTI, PING]}}",
         [("28: after.command: can never hold on the same key, none of these has one; "
          "on the same connection it is same: connection")]),
        ("match: {commands: PING, after: {command: SET, same: key}}",
         [("44: after.command: can never hold on the same key, none of 'commands' has one; "
          "on the same connection it is same: connection")]),
        ("match: {after: {command: [SET, '@handshake'], same: connection}}",
         [("34: after.command: @handshake stands in match.commands only; name the commands; "
          "did you mean 'CLIENT'?")]),
        ("match: {reply: {error: '-ERR', type: bulk}}",
         [("26: reply.error: can never hold, that is no part of an error's text; did you mean 'ERR'?"),
          "40: reply.type: can never hold together with 'error'"]),
        ("match: {reply: {error: ERR, type: 'null'}}",
         ["37: reply.type: can never hold together with 'error'"]),
        ("match: {connection: {opened_after: disconnect}}",
         ["38: connection.opened_after: 'disconnect' waits for itself to fire"]),
        ("when: {from: 2s, until: 1s}", ["27: until: can never hold, it ends before it begins"]),
        ("when: {until: 0s}", ["17: until: can never hold, it ends as it begins"]),
        ("when: {first: 2, every: 3}",
         ["27: every: can never hold, the first 2 are over before match 3"]),
        ("when: {first: 2, nth: [3, 4]}", ["25: nth: can never hold, only the first 2 count"]),
        ("when: {every: 2, nth: [3, 5]}",
         ["25: nth: can never hold, none of them is a multiple of 2 ('every')"]),
    ],
)  # fmt: skip
def test_never(told, fields, problems):
    """A match or a when that can never hold is told where it is written."""
    found = told(cut(fields))
    assert found == [f"a.yaml:4:{problem}" for problem in problems]


@pytest.mark.parametrize(
    "fields",
    [
        "match: {commands: [rpush, Config|Set, '@LIST', '@denyoom', '@handshake', CONFIG]}",
        "match: {commands: [PING, GET], keys: a}",
        "match: {commands: [EVALSHA, XREADGROUP, SORT, OBJECT], keys: a}",
        "match: {commands: [JSON.SET], keys: a}",
        "match: {commands: ['@read'], keys: a, key_share: 10%, slots: 0-7}",
        "match: {reply: {error: X}}",
        "match: {reply: {error: X, type: error}}",
        "match: {commands: PING, after: {command: PING, same: connection}}",
        "match: {commands: [PING, GET], after: {command: [PING, SET]}}",
        "match: {after: {command: JSON.SET}}",
        "when: {from: 1s, until: 2s}",
        "when: {skip: 5, nth: 1, first: 1}",
        "when: {every: 2, nth: [3, 4]}",
        "when: {first: 3, every: 3}",
        "when: {chance: 0%}",
        "when: {trigger: manual}",
    ],
)
def test_sometimes(load, fields):
    """What can hold is no problem."""
    assert len(load(cut(fields)).rules) == 1


def test_modules(load, told):
    """A module that the table does not know may be there; one that it knows has the commands it has."""
    assert load(cut("match: {commands: [ACME.FROB]}")).rules
    base = CommandTable.bundled()
    spec = base.specs["GET"]
    table = CommandTable({**base.specs, "JSON.GET": spec, "JSON.SET": spec})
    assert told(cut("match: {commands: [JSON.GTE]}"), table=table) == [
        "a.yaml:4:22: commands: unknown command JSON.GTE; did you mean 'JSON.GET'?"
    ]


def test_writes_only(load, told):
    """A fault that acts on writes needs one among the commands; a script may write."""
    for good in ("[GET, SET]", "EVALSHA", "[ACME.FROB, GET]", "'@list'"):
        assert load(drop(f"match: {{commands: {good}}}")).rules
    for bad in ("GET", "[GET, PING]", "'@pubsub'", "'@handshake'"):
        assert told(drop(f"match: {{commands: {bad}}}")) == [
            (
                "a.yaml:5:21: commands: can never hold, fault drop_write acts on writes and none of these "
                "is one"
            )
        ]


@pytest.mark.parametrize(
    ("limit", "good", "bad", "why"),
    [
        ("reads_only", ("GET", "[GET, SET]", "'@list'", "ACME.FROB"), ("SET", "[SET, PING]", "EVAL"),
         "reads and none of these is one"),
        ("keys_only", ("GET", "[PING, SET]", "EVALSHA", "ACME.FROB"), ("PING", "'@connection'"),
         "keys and none of these has one"),
    ],
)  # fmt: skip
def test_reads_and_keys_only(load, told, monkeypatch, limit, good, bad, why):
    """A fault that acts on reads, or on keys, needs a command of that kind too."""
    monkeypatch.setattr(FAULTS["disconnect"], limit, True)
    for each in good:
        assert load(cut(f"match: {{commands: {each}}}")).rules
    for each in bad:
        assert told(cut(f"match: {{commands: {each}}}")) == [
            f"a.yaml:4:21: commands: can never hold, fault disconnect acts on {why}"
        ]


def test_no_reply_yet(told):
    """A reply cannot be tested before there is one: not where `at` says so, nor where it need not."""
    assert told(
        "faults:\n"
        "  - {fault: disconnect, at: before_forward, match: {reply: {type: array}}}\n"
        "  - {fault: drop_write, tell: ok, match: {reply: {type: array}}}\n"
    ) == [
        "a.yaml:2:53: reply: can never hold, at before_forward there is no reply yet",
        "a.yaml:3:43: reply: can never hold, at before_forward there is no reply yet",
    ]


def arming(**armed_by):
    """Faults by name, and by which each is armed."""
    lines = [
        f"  - {{fault: drop_write, tell: ok, name: {name}, when: {{armed_by: {armer}}}}}"
        if armer
        else f"  - {{fault: drop_write, tell: ok, name: {name}}}"
        for name, armer in armed_by.items()
    ]
    return "\n".join(["faults:", *lines])


def test_arming(load, told):
    """A fault is armed by another one that there is, and not, by whatever way, by itself."""
    assert load(arming(a="", b="a", c="b", d="a")).rules
    assert told(arming(first="", bb="frist", cc="nobody")) == [
        "a.yaml:3:62: armed_by: no fault is called 'frist'; did you mean 'first'?",
        "a.yaml:4:62: armed_by: no fault is called 'nobody'",
    ]
    assert told(arming(a="a")) == ["a.yaml:2:61: armed_by: 'a' cannot arm itself"]
    assert told(arming(a="b", b="c", c="a", d="a")) == [
        "a.yaml:2:61: armed_by: can never fire, 'a' waits for 'b' waits for 'c' waits for 'a'",
        "a.yaml:3:61: armed_by: can never fire, 'b' waits for 'c' waits for 'a' waits for 'b'",
        "a.yaml:4:61: armed_by: can never fire, 'c' waits for 'a' waits for 'b' waits for 'c'",
    ]


def test_other_faults_and_commands_in_match(load, told):
    """What `connection` and `after` speak of has to be there as well."""
    assert load(
        f"{drop('')}{cut('match: {connection: {opened_before: x}, after: {command: DEL}}')[7:]}"
    ).rules
    assert told(cut("match: {connection: {opened_before: disconect, opened_after: xyzzy}}")) == [
        "a.yaml:4:39: connection.opened_before: no fault is called 'disconect'",
        "a.yaml:4:64: connection.opened_after: no fault is called 'xyzzy'",
    ]
    assert told(cut("match: {after: {command: [DEL, GTE, ACME.X]}}")) == [
        "a.yaml:4:34: after.command: unknown command GTE; did you mean 'GET'?"
    ]


def test_who_waits_for_each_other(load, told):
    """A fault that speaks of when another one first fired waits for that one, as one that is armed by it does."""
    lines = [
        "faults:",
        "  - {fault: drop_write, tell: ok, name: a, match: {connection: {opened_before: b, opened_after: c}}}",
        "  - {fault: drop_write, tell: ok, name: b, when: {armed_by: d}}",
        "  - {fault: drop_write, tell: ok, name: c}",
        "  - {fault: drop_write, tell: ok, name: d, match: {connection: {opened_after: a, opened_before: b}}}",
    ]
    assert told("\n".join(lines)) == [
        "a.yaml:2:80: connection.opened_before: can never fire, 'a' waits for 'b' waits for 'd' waits for 'a'",
        "a.yaml:3:61: armed_by: can never fire, 'b' waits for 'd' waits for 'b'",
        "a.yaml:5:79: connection.opened_after: can never fire, 'd' waits for 'a' waits for 'b' waits for 'd'",
        "a.yaml:5:97: connection.opened_before: can never fire, 'd' waits for 'b' waits for 'd'",
    ]
    assert load("\n".join(lines[:-1]).replace("armed_by: d", "armed_by: c")).rules


def test_armed_from_another_file(load):
    """A fault may be armed by one of another profile, and by one that goes by its type."""
    first = "faults: [{fault: drop_write, tell: ok}]"
    second = drop("when: {armed_by: drop_write}")
    assert len(load(second, first).rules) == 2


def test_checked_all_the_same(told):
    """A rule that has one mistake is still looked through for others."""
    fields = "how: rest\n  match: {commands: [RPUHS], db: x}\n  when: {until: 0s, nth: 0}"
    assert told(cut(fields)) == [
        "a.yaml:4:8: how: expected reset or close, got 'rest'; did you mean 'reset'?",
        "a.yaml:5:22: commands: unknown command RPUHS; did you mean 'RPUSH'?",
        "a.yaml:5:34: db: expected a database number from 0, got 'x'",
        "a.yaml:6:17: until: can never hold, it ends as it begins",
        "a.yaml:6:26: nth: expected a match number (a whole number from 1), got 0",
    ]


EXCHANGES = (
    "commands: GET",
    "keys: a",
    "key_share: 5%",
    "slots: 7",
    "arguments: {has: x}",
    "batch: {index: 2}",
    "after: {command: GET}",
    "reply: {type: array}",
)


@pytest.mark.parametrize("field", EXCHANGES)
def test_only_exchanges_have_these(told, field):
    """A frame nobody asked for, and a new connection, have no command, keys or reply."""
    name = field.partition(":")[0]
    frame = f"{name}: can never hold, a frame that nobody asked for has none"
    assert told(f"faults:\n- fault: push\n  match: {{{field}}}") == [f"a.yaml:3:11: {frame}"]
    latency = "- fault: latency\n  delay: 1s\n  at: after_apply"
    assert told(f"faults:\n{latency}\n  match: {{push: {{kind: message}}, {field}}}") == [
        f"a.yaml:5:34: {frame}"
    ]
    problems = told(f"faults:\n- fault: admit\n  match: {{{field}}}")
    assert f"a.yaml:3:11: {name}: can never hold, fault admit acts on new connections" in problems


@pytest.mark.parametrize(
    "fields",
    [
        "fault: push",
        "fault: push, match: {push: {channel: c}, db: 1, clients: x, connection: {state: subscribed}}",
        "fault: latency, delay: 1s, at: after_apply, match: {push: {kind: message}}",
        "fault: admit, match: {clients: {address: 10.*}, connection: {nth: 2}}",
    ],
)
def test_what_frames_and_connections_have(load, fields):
    """What is known of a frame or a new connection can be said of it."""
    assert len(load(f"faults:\n- {{{fields}}}").rules) == 1


def test_faults_that_act_on_commands_only(told):
    """A fault that does not act on frames is told so at `push`."""
    assert told(drop("match: {push: {kind: message}}")) == [
        "a.yaml:5:11: push: can never hold, fault drop_write acts on commands and their replies"
    ]


def test_a_frame_is_not_forwarded(told):
    """A fault on a frame acts on its way to the client, where else."""
    rule = "- fault: latency\n  delay: 1s\n  match: {push: {kind: message}}\n  at: before_forward"
    assert told(f"faults:\n{rule}") == [
        "a.yaml:5:7: at: can never hold, a frame that nobody asked for is not forwarded"
    ]


@pytest.mark.parametrize(
    ("field", "path", "column"),
    [
        ("db: 1", "db", 11),
        ("clients: x", "clients", 11),
        ("clients: {name: x, address: y}", "clients", 11),
        ("connection: {nth: 1, state: blocked}", "connection.state", 32),
    ],
)
def test_a_new_connection_has_sent_nothing(told, field, path, column):
    """Its database, its name and its state are nothing yet."""
    assert told(f"faults:\n- fault: admit\n  match: {{{field}}}") == [
        f"a.yaml:3:{column}: {path}: can never hold, a new connection has sent nothing yet"
    ]


def test_no_frames_among_connections(told):
    """A new connection is no frame either."""
    assert told("faults:\n- fault: admit\n  match: {push: {kind: message}}") == [
        "a.yaml:3:11: push: can never hold, fault admit acts on new connections"
    ]


def test_commands_in_settings(load, told):
    """Commands that a fault's own settings name have to be there as well."""
    assert load("faults:\n- {fault: admit, command: GET}").rules
    assert told("faults:\n- {fault: admit, command: GTE}") == [
        "a.yaml:2:27: command: unknown command GTE; did you mean 'GET'?"
    ]
