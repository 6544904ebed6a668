"""gunicorn behind nginx: pages, API, audio streams and server-sent events. Read with `gunicorn -c`.

Threads, because a stream stays open: each holds one while it lasts, and a process takes no more of them than
OPEN_STREAMS_PER_PROCESS, which must stay well below its threads so that plain requests always find one.
"""

import multiprocessing
import os

wsgi_app = "portal.wsgi:application"
bind = os.environ.get("WEB_BIND", "127.0.0.1:8000")
worker_class = "gthread"
workers = int(os.environ.get("WEB_WORKERS", multiprocessing.cpu_count()))
threads = int(os.environ.get("WEB_THREADS", "32"))
# Heartbeats come from the process, not from its requests: an open stream does not run into this.
timeout = 60
# What is still open when a process is told to stop is a stream; its client comes back by itself.
graceful_timeout = 10
# Longer than nginx keeps its side, so that nginx is the one that closes.
keepalive = 75
# A fresh process now and then, not all at once. A fork must not share the database pool, so nothing is preloaded.
max_requests = 20_000
max_requests_jitter = 2_000
preload_app = False
# In memory: on a slow disk the heartbeat file itself would make a process look dead.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  # made by mkstemp
control_socket_disable = True
# nginx writes the access log. A second one would need care to leave out queries: they hold what people search for.
accesslog = None
