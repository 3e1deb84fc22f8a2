"""The control API: HTTP in threads of its own, which must answer while the data side is stalled.

A request's way: server (sockets, and how many) -> handler (reads it, bounded) -> guard (who may ask) -> routing (which
function) -> health, profile, check, faults, events, timeline, connections -> answer. openapi tells of the same routes.

page is what a browser gets; the files in page/ ask these routes for all that they show.
"""
