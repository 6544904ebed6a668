import os
import sys
from typing import Final

from django.core.wsgi import get_wsgi_application

# A thread that has a chunk of speech to pass on, while others work out pages, has its turn after so long (Python's own
# 5 ms, a few threads before it, can be heard).
SWITCH_INTERVAL_S: Final = 0.0005

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.production")
sys.setswitchinterval(SWITCH_INTERVAL_S)
application = get_wsgi_application()
