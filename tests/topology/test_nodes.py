"""A cluster's nodes: read from what they say of each other, told apart, and numbered for good."""

import pytest

from chaosproxy.topology.nodes import Directory, Node, members, read_nodes

A, B, C = "a" * 40, "b" * 40, "c" * 40
TEXT = f"""\
{A} 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-8191 [5->-{B}]
{B} 127.0.0.1:7001@17001,node-b.example,,tls-port=0,shard-id=x master,fail? - 0 1 2 connected 8192-16383
{C} ::1:7002@17002,,shard-id=x slave {A} 0 1 1 disconnected
"""


def node(letter, port, **how):
    return Node(letter * 40, (("h", port),), **how)


def test_read():
    """All versions' lines: addresses, host names, who is speaking, who is a primary."""
    assert read_nodes(TEXT.encode()) == [
        Node(A, (("127.0.0.1", 7000),), myself=True, primary=True),
        Node(B, (("127.0.0.1", 7001), ("node-b.example", 7001)), primary=True),
        Node(C, (("::1", 7002),), of=A),
    ]


def test_roles():
    """A primary has slots; a replica says of whom it is one; a node without either is neither."""
    text = f"{A} h:7000@1 master - 0 0 1 connected\n{B} h:7001@1 slave,fail {A} 0 0 1 connected\n"
    assert [(node.primary, node.of) for node in read_nodes(text.encode())] == [
        (False, ""),
        (False, A),
    ]


@pytest.mark.parametrize(
    ("line", "places"),
    [
        (f"{A} 127.0.0.1:7000@17000,shard-id=x myself,master - 0 0 1 connected", (("127.0.0.1", 7000),)),
        (f"{A} 127.0.0.1:7000 myself,master - 0 0 1 connected", (("127.0.0.1", 7000),)),
        (f"{A} 10.0.0.1:7000@1,10.0.0.1 myself,master - 0 0 1 connected", (("10.0.0.1", 7000),)),
        (f"{A} :7000@17000 myself,master - 0 0 0 connected", ()),
    ],
)  # fmt: skip
def test_addresses(line, places):
    """One that does not know its own address has none; a name that is the address is no second one."""
    assert read_nodes(line.encode())[0].places == places


@pytest.mark.parametrize(
    "line",
    [
        "",
        "-ERR This instance has cluster support disabled",
        f"{A} 127.0.0.1:7000@17000 handshake - 0 0 0 connected",
        f"{A} :0@0 slave,fail,noaddr {B} 0 0 1 disconnected",
        f"{A} 127.0.0.1@17000 master - 0 0 1 connected",
        f"{A} 127.0.0.1:²@17000 master - 0 0 1 connected",
        f"{A} 127.0.0.1:{'9' * 5000}@17000 master - 0 0 1 connected",
        "short 127.0.0.1:7000@17000 master - 0 0 1 connected",
    ],
)
def test_lines_that_are_no_nodes(line):
    """Whom nobody knows yet, or knows where to find, is left out; so is what is no line of a node."""
    assert read_nodes(line.encode()) == []


def test_members():
    """Who is seen by another one belongs to it; who only sees itself was forgotten."""
    a, b, c = node("a", 7000), node("b", 7001), node("c", 7002)
    itself = {each.id: node(each.id[0], each.places[0][1], myself=True) for each in (a, b, c)}
    whole = [[itself[A], b, c], [a, itself[B], c], [a, b, itself[C]]]
    assert members(whole) == [a, b, c]
    assert members(whole[1:2]) == [a, c]
    assert members([[itself[A], b], [a, itself[B]], [itself[C]]]) == [a, b]
    assert members([[], [itself[A]], [itself[B]]]) == [itself[A]]
    assert members([]) == []


def test_numbers():
    """By place, by host name, and by what a node at a place says who it is."""
    directory = Directory()
    assert directory.number(("seed.example", 7000)) == 1
    directory.join(1, Node(A, (("127.0.0.1", 7000),)))
    b = Node(B, (("127.0.0.1", 7001), ("node-b.example", 7001)))
    assert directory.find_node(b) is None
    assert list(directory.learn([Node(A, (("127.0.0.1", 7000),)), b])) == [1, 2]
    assert directory.find_node(b) == 2
    assert directory.find_node(Node(C, (("node-b.example", 7001),))) == 2
    assert directory.find(("node-b.example", 7001)) == 2
    assert directory.find(("127.0.0.1", 7002)) is None
    assert directory.number(("127.0.0.1", 7001)) == 2
    assert directory.number(("127.0.0.1", 7002)) == 3
    assert directory.hosts(2) == ["127.0.0.1", "node-b.example"]
    assert directory.hosts(1) == ["seed.example", "127.0.0.1"]
    assert directory.hosts(9) == []


def test_numbers_are_kept():
    """A node that goes and comes back, or comes back elsewhere, is the same; who takes its place then is not."""
    directory = Directory()
    a, b = node("a", 7000), node("b", 7001)
    assert list(directory.learn([a, b])) == [1, 2]
    assert list(directory.learn([b])) == [2]
    moved, other = Node(A, (("h", 7009),)), Node(C, (("h", 7000),))
    assert directory.learn([b, other, moved]) == {2: b, 3: other, 1: moved}
    assert directory.find(("h", 7000)) == 3
    assert directory.find(("h", 7009)) == 1


def test_who_begins_anew_at_its_place():
    """With another id, and the old one gone, what is at a place keeps its number."""
    directory = Directory()
    assert list(directory.learn([node("a", 7000)])) == [1]
    assert directory.learn([node("b", 7000)]) == {1: node("b", 7000)}


def test_without_an_address():
    """Who has none gets no number, until it has."""
    directory = Directory()
    assert directory.learn([Node(A, ())]) == {}
    assert directory.learn([node("a", 7000)]) == {1: node("a", 7000)}
    assert directory.learn([Node(A, ())]) == {1: Node(A, ())}
