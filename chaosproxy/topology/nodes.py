"""A cluster's nodes, as its nodes see each other, and what the proxy calls each of them.

Takes the text of CLUSTER NODES from any of them; gives nodes, who of them belongs to the cluster, and their numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

#: A host (IP address or name) and a port.
Place = tuple[str, int]
#: A node that somebody else's view still has, and that is none to be spoken to.
_ABSENT = frozenset({"noaddr", "handshake"})


@dataclass(frozen=True, slots=True)
class Node:
    """One node as another one (`myself`: it itself) sees it. `places`: its address, and that with its host name.

    `primary`: it is one that has slots. `of`: the id of the one that a replica copies.
    """

    id: str
    places: tuple[Place, ...]
    myself: bool = False
    primary: bool = False
    of: str = ""


def read_nodes(text: bytes) -> list[Node]:
    """Read CLUSTER NODES. Lines that are none, and nodes without an address, are left out.

    A node that does not know its own address yet stands there without a host: it has no place.
    """
    nodes = []
    for line in text.decode("utf-8", "replace").splitlines():
        words = line.split(" ")
        if len(words) < 8 or len(words[0]) != 40:
            continue
        flags = set(words[2].split(","))
        if flags & _ABSENT:
            continue
        where, *more = words[1].split(",")
        host, _, port = where.partition("@")[0].rpartition(":")
        if not (port.isascii() and port.isdigit() and len(port) < 6):
            continue
        hosts = [host] + [name for name in more[:1] if "=" not in name]
        places = tuple((each, int(port)) for each in dict.fromkeys(hosts) if each)
        primary = "master" in flags and len(words) > 8
        nodes.append(Node(words[0], places, "myself" in flags, primary, words[3].strip("-")))
    return nodes


def members(views: Sequence[Sequence[Node]]) -> list[Node]:
    """Who belongs to the cluster: whom another one than itself sees, or the first one, if nobody sees another; by address.

    A node that was forgotten by the others still sees itself, and perhaps them.
    """
    seen = {node.id: node for view in views for node in view if not node.myself}
    if not seen:
        seen = {node.id: node for node in next(filter(None, views), ())}
    return sorted(seen.values(), key=lambda node: node.places)


@dataclass(slots=True)
class Directory:
    """Which number each node has, from 1 on, in the order they became known: kept when a node goes, for its return.

    A node is known by its places, and by its id once that was seen: at another address it is still the same.
    """

    _places: dict[Place, int] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)
    _last: int = 0

    def find(self, place: Place) -> int | None:
        """Give the number of what is at a place, if anything is known to be."""
        return self._places.get(place)

    def find_node(self, node: Node) -> int | None:
        """Give a node's number, if it is known."""
        known = (self._ids.get(node.id), *map(self.find, node.places))
        return next((number for number in known if number is not None), None)

    def number(self, place: Place) -> int:
        """Give the number of what is at a place, a new one if nothing is known to be."""
        found = self._places.get(place)
        if found is None:
            self._last += 1
            found = self._places[place] = self._last
        return found

    def join(self, number: int, node: Node) -> None:
        """The node that has this number is this one, and is at these places."""
        self._ids[node.id] = number
        self._places.update(dict.fromkeys(node.places, number))

    def learn(self, nodes: Sequence[Node]) -> dict[int, Node]:
        """These are all nodes there are now: give each by its number, new ones for those that are not known.

        At another address a node is still the same, and another node at its old one is not it. One that nobody has told the
        address of yet, and that is not known, gets none.
        """
        numbers = {}
        taken = {self._ids[node.id] for node in nodes if node.id in self._ids}
        for node in nodes:
            number = self._ids.get(node.id)
            if number is None:
                known = (self.find(place) for place in node.places)
                number = next((each for each in known if each and each not in taken), None)
            if number is None and node.places:
                self._last += 1
                number = self._last
            if number is not None:
                taken.add(number)
                self.join(number, node)
                numbers[number] = node
        return numbers

    def hosts(self, number: int) -> list[str]:
        """Give the hosts that a node is known by, the first one first."""
        return list(dict.fromkeys(host for (host, _), n in self._places.items() if n == number))
