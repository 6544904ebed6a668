"""Production's settings for `collectstatic`, but that style sheets alone are compressed.

Brotli takes more than a minute of a processor for the scripts of other packages and their source maps, which no test
looks at. Names, folders and the manifest are production's.
"""

from whitenoise.compress import Compressor

from portal.settings.production import *  # noqa: F403

WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (
    *Compressor.SKIP_COMPRESS_EXTENSIONS,
    "js",
    "map",
    "svg",
    "txt",
    "html",
    "md",
)
