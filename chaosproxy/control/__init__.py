"""The control API: HTTP in threads of its own, which must answer while the data side is stalled.

A request's way: server -> sockets (it comes, however slowly, bounded; visitor: one connection) -> handler (its head is read) -> guard (who may ask) ->
routing (which function; api: the table of them) -> health, profile, check, faults, events, timeline, connections -> answer -> sockets (it leaves,
however slowly). backend is what they ask of the proxy. toxiproxy_api has Toxiproxy's routes, toxiproxy the proxies and toxics that
its clients make. openapi tells of the same routes, in the shapes that shapes has.

page is what a browser gets; the files in page/ ask these routes for all that they show.
"""
