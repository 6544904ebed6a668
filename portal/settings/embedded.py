"""One machine, nothing to configure: what `make run` starts. The supervisor sets the environment."""

import os

os.environ.setdefault("VOICEPOOL_OUTBOX", "true")

from portal.settings.base import *  # noqa: E402, F403

# Mail is kept as files that the outbox page shows to a browser on this machine.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
# Any name may lead here while it runs on a person's own machine; production names its hosts.
ALLOWED_HOSTS = ["*"]
