"""Engines: what turns text into speech, each in a child process of its own.

Nothing here imports Django, and everything runs on Python 3.10: an engine may need another interpreter than
the portal. `catalogue` is cheap and is read by the pages; `process` is the worker's side; `host` is the
child.
"""
