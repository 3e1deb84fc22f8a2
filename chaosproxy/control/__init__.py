"""The HTTP side: what operators, scrapers and probes ask a running proxy.

- server.py: the HTTP server, in threads of its own
"""
