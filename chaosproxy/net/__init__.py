"""Everything with sockets and clocks around the pure core; the only place that knows asyncio.

- address.py: where to listen and to dial, as users write it
- tls.py: contexts from the files users name
- listener.py: accepts clients (TCP, unix socket, TLS)
- reception.py: a listener beside the routes, with the clients that came there
- dial.py: opens connections to the server
- entrance.py: what a new client meets before anybody is dialled for it
- door.py: when nobody is listened to at all
- connection.py: joins a client's two sockets and the conversation between them
- sides.py: those two sockets, as asyncio sees them
- alarm.py: the one timer of a conversation
- flow.py: who is read
- ending.py: how a connection ends, by RST or FIN, after the bytes that were promised
- side.py: the proxy's own connections to the server
- survey.py: asks the server what it is and which commands it knows
- relay.py: the replication link between a primary and its standby
- pair.py: those two servers, and which of them is the primary
- fleet.py: a listener for each server of a service
- sentinels.py: asks Sentinels where those are
- sentinel.py: a Sentinel as clients see it
- guided.py: these three together
- own_sentinel.py: a Sentinel where there is no real one
- behind.py: whatever stands behind a proxy, one server or more
- plan.py: what a proxy is started with
- proxy.py: all connections of one proxy, its profile in force, its start and its end
- loop.py: the event loop, in a thread of its own
"""
