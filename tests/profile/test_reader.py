"""Settings from YAML: every problem of a mapping at once, each with the way to it."""


def test_the_way_to_a_nested_value(told):
    """A problem inside a setting names all fields on the way, and points at the value itself."""
    yaml = """\
faults:
  - fault: latency
    at: after_apply
    delay:
      lognormal: {p50: 10ms, p99: fast}
"""
    assert told(yaml) == [
        (
            "a.yaml:5:35: delay.lognormal.p99: expected a duration such as 800ms or 1.5s, "
            "longer than 0, got 'fast'"
        )
    ]


def test_an_item_of_a_list(told):
    """A problem in a list points at its item."""
    yaml = "faults: [{fault: drop_write, tell: ok, match: {commands: [SET, A B]}}]"
    assert told(yaml) == [
        (
            "a.yaml:1:64: commands: expected a command, CONFIG|SET or @category, got 'A B'; "
            "did you mean '[A, B]'?"
        )
    ]


def test_an_unknown_field_within_a_setting(told):
    """It points at the key."""
    yaml = "faults: [{fault: drop_write, tell: ok, match: {arguments: {haz: NX}}}]"
    assert told(yaml) == [
        (
            "a.yaml:1:60: arguments: unknown field 'haz', expected {has: NX} or {contains: DONE}; "
            "did you mean 'has'?"
        )
    ]


def test_missing(told):
    """A required setting that is missing is told with the words it takes, where the entry begins."""
    assert told("faults:\n  - fault: drop_write\n  - fault: latency\n    at: after_apply\n") == [
        "a.yaml:2:5: fault drop_write needs 'tell' (ok, error)",
        "a.yaml:3:5: fault latency needs 'delay'",
    ]


def test_wrong_level(told):
    """A field that stands one level too high or too low is told where it belongs."""
    yaml = """\
faults:
  - fault: disconnect
    at: after_apply
    commands: [RPUSH]
    nth: 1
    match: {how: reset, every: 2}
    when: {keys: x, at: after_apply}
fault: latency
"""
    assert told(yaml) == [
        "a.yaml:4:5: unknown field 'commands' in fault disconnect: it belongs under 'match'",
        "a.yaml:5:5: unknown field 'nth' in fault disconnect: it belongs under 'when'",
        "a.yaml:6:13: unknown field 'how' in match: it belongs beside 'fault'",
        "a.yaml:6:25: unknown field 'every' in match: it belongs under 'when'",
        "a.yaml:7:12: unknown field 'keys' in when: it belongs under 'match'",
        "a.yaml:7:21: unknown field 'at' in when: it belongs beside 'fault'",
        "a.yaml:8:1: unknown field 'fault' in a profile: it belongs in an entry of 'faults'",
    ]


def test_misspelt(told):
    """A misspelt field is told with what was probably meant."""
    yaml = """\
descripton: x
faults:
  - fault: disconnect
    at: after_apply
    hwo: reset
    mach: {}
    match: {command: GET, xyzzy: 1}
    when: {n-th: 1}
"""
    assert told(yaml) == [
        "a.yaml:1:1: unknown field 'descripton' in a profile; did you mean 'description'?",
        "a.yaml:5:5: unknown field 'hwo' in fault disconnect; did you mean 'how'?",
        "a.yaml:6:5: unknown field 'mach' in fault disconnect; did you mean 'match'?",
        "a.yaml:7:13: unknown field 'command' in match; did you mean 'commands'?",
        "a.yaml:7:27: unknown field 'xyzzy' in match",
        "a.yaml:8:12: unknown field 'n-th' in when; did you mean 'nth'?",
    ]


def test_what_others_call_it(told):
    """What other tools call a field is told with what it is called here; `on:` is a name as any other."""
    entry = "{fault: disconnect, on: x, at: after_apply, when: {probability: 1, times: 3, on: 1}}"
    assert told(f"faults: [{entry}]") == [
        "a.yaml:1:30: unknown field 'on' in fault disconnect; did you mean 'at'?",
        "a.yaml:1:61: unknown field 'probability' in when; did you mean 'chance'?",
        "a.yaml:1:77: unknown field 'times' in when; did you mean 'limit'?",
        "a.yaml:1:87: unknown field 'on' in when",
    ]


def test_all_that_is_wrong_with_one_value(told):
    """Of a list, and of a mapping's parts, each wrong one is told at its place, as far as a hundred."""
    entry = "{fault: drop_write, tell: ok, match: {keys: [a, [b], '', c], batch: {index: x}, arguments: {has: 1.5, hsa: 1}}}"
    assert told(f"faults: [{entry}]") == [
        "a.yaml:1:58: keys: expected text, got a list",
        "a.yaml:1:63: keys: expected a glob such as chat:*, got ''",
        "a.yaml:1:86: batch.index: expected a place in the batch (a whole number from 1) or last, got 'x'",
        "a.yaml:1:107: arguments.has: expected text, got 1.5: put it in quotes",
        "a.yaml:1:112: arguments: unknown field 'hsa', expected {has: NX} or {contains: DONE}; did you mean 'has'?",
    ]
    found = told(f"faults: [{{fault: drop_write, tell: ok, match: {{keys: [{'[],' * 1000}]}}}}]")
    assert len(found) == 101
    assert found[-1].endswith("100 problems: no more are looked for")


def test_no_mapping(told, load):
    """`match` and `when` are mappings; nothing under them is no fields."""
    assert told("faults: [{fault: drop_write, tell: ok, match: GET, when: [1]}]") == [
        "a.yaml:1:47: expected match as a mapping, got 'GET'",
        "a.yaml:1:58: expected when as a mapping, got a list",
    ]
    (rule,) = load("faults:\n  - fault: drop_write\n    tell: ok\n    match:\n    when:\n").rules
    assert rule.match.commands is None
    assert rule.when.nth is None
