"""One machine, nothing to configure: what `make run` starts. The supervisor sets the environment."""

import os

os.environ.setdefault("VOICEPOOL_OUTBOX", "true")
os.environ.setdefault("PAYMENT_PROVIDERS", "test")

from portal.settings.base import *  # noqa: F403

# Mail is kept as files that the outbox page shows to a browser on this machine.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
# Any name may lead here while it runs on a person's own machine; production names its hosts.
ALLOWED_HOSTS = ["*"]
# Straight from the tree, under their own names: nothing to collect before the first start, and an edit is seen at once.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405
WHITENOISE_USE_FINDERS = True
# Marked as what it is on every page: no money moves.
PAYMENTS["TEST_PROVIDER"] = True  # noqa: F405
# A newcomer's own program on the same machine may be told things without a certificate.
WEBHOOKS["LOOPBACK_HTTP"] = True  # noqa: F405
