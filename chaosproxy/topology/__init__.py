"""What stands behind the proxy when it is more than one server: their links, their roles, their addresses.

Pure, as core/ is: bytes and times in, bytes and decisions out; `net/` has the sockets.

- stream.py: a replication stream, cut where commands end
- backlog.py: what of it is held back, and what of it is lost at a switch
- sentinel.py: what Sentinels say, with other addresses
- own_sentinel.py: what the proxy says where there are none
- nodes.py: a cluster's nodes, as they see each other, and what the proxy calls each
"""
