"""Counts one up in Django's cache, where the count is there for a minute; says what that gave.

Takes ports, and the cache's class.
"""

import json
import sys

from django.conf import settings

port, _, backend = sys.argv[1:]
cache = {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{port}/0", "KEY_PREFIX": ""}
settings.configure(CACHES={"default": cache}, USE_TZ=True)

from django.core.cache import cache  # noqa: E402 - it reads the settings

cache.set("count", 1, timeout=60)
try:
    gave = cache.incr("count")
except ValueError:
    gave = "ValueError"
print(json.dumps(gave))
