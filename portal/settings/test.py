"""Tests: the real database and Redis that tests/servers.py starts; only speed and mail differ."""

import os
import tempfile

os.environ.setdefault("SECRET_KEY", "only-for-tests")
os.environ.setdefault("DATABASE_URL", "postgres://localhost/voicepool")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/0")
os.environ.setdefault("VOICEPOOL_DATA", os.path.join(tempfile.gettempdir(), "voicepool-test"))
os.environ.setdefault("VOICEPOOL_CPU_ENGINE", "simulated")
# They would be jobs that no test asked for.
os.environ.setdefault("VOICEPOOL_PRESET_SAMPLES", "false")

from portal.settings.base import *  # noqa: F403
from portal.settings.base import DATABASES

EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405
WHITENOISE_AUTOREFRESH = True
ALLOWED_HOSTS = ["*"]
# A thread would write beside the transaction that a test rolls back.
REQUEST_LOG_FLUSH_S = 0
# A pool would keep connections to a test database that is about to be dropped.
DATABASES["default"]["OPTIONS"].pop("pool", None)
# A database with all tables, where tests/servers.py has one: to copy it is faster than to apply the migrations.
DATABASES["default"]["TEST"] = {"TEMPLATE": os.environ.get("TEST_DATABASE_TEMPLATE") or None}
