"""The control API: HTTP in threads of its own, which must answer while the data side is stalled.

A request's way: server (sockets, and how many) -> handler (reads it, bounded) -> guard (who may ask) -> routing (which
function) -> health, profile, faults, events, connections -> answer. openapi tells of the same routes.
"""
