"""Settings that hold everywhere. `embedded`, `production` and `test` differ from these in few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.lib.env import env_bool, env_int, env_list, env_matching, env_text

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = Path(env_text("VOICEPOOL_DATA", str(BASE_DIR / ".data")))
BASE_URL = env_text("VOICEPOOL_BASE_URL", "http://127.0.0.1:8000").rstrip("/")

SECRET_KEY = env_text("SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", "")

INSTALLED_APPS = [
    "portal",
    "portal.logs.apps.LogsConfig",
    "accounts",
    "billing",
    "tts",
    "portal.console.apps.RecordsConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "django_htmx",
    "django_rq",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
]

MIDDLEWARE = [
    "portal.lib.http.RequestIdMiddleware",
    "portal.logs.middleware.RequestLogMiddleware",
    "portal.lib.opening.OneStreamAtATimeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.tenancy.WorkspaceMiddleware",
    "portal.lib.http.BodyLimitMiddleware",
    "portal.lib.problem.PageErrorMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.context.frame",
            ],
            # Also for {% extends %}, which comes before any {% load %}.
            "builtins": ["portal.templatetags.ui"],
        },
    },
]

DATABASES = {"default": dj_database_url.parse(env_text("DATABASE_URL"))}
# One pool per process: 32 web threads share these connections instead of holding one each.
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"].get("OPTIONS", {}),
    "pool": {"min_size": 1, "max_size": env_int("DATABASE_POOL_SIZE", 10), "timeout": 10},
    # A process that is frozen, or a host that is gone, in the middle of a transaction must not hold its locks for ever.
    "options": "-c idle_in_transaction_session_timeout=15s",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env_text("REDIS_URL")
# Django-RQ wants a "default". The queues of device slots are made by name in portal.lib.queues.
# No dashboard: it would show that one queue, and could run and delete jobs behind the back of the attempts.
RQ_SHOW_ADMIN_LINK = False
RQ_QUEUES = {"default": {"URL": REDIS_URL, "SERIALIZER": "rq.serializers.JSONSerializer"}}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "cache",
        # Every page looks into it: while Redis is away nobody waits through redis-py's own ten retries.
        "OPTIONS": {
            "socket_connect_timeout": 1,
            "socket_timeout": 1,
            "retry": Retry(NoBackoff(), 1),
            "serializer": "portal.lib.cache.JsonSerializer",
        },
    }
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
ACCOUNT_ADAPTER = "portal.sign_up.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_CONFIRM_EMAIL_ON_GET = False
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
ACCOUNT_LOGOUT_REDIRECT_URL = "landing"
ACCOUNT_SESSION_REMEMBER = True
# One address per account; a new one counts once it is verified, and asks for the password first.
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_METHODS = {"password"}
# A changed password or address is told by mail, so that its owner notices.
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_FORMS = {
    "signup": "accounts.forms.SignUpForm",
    "login": "accounts.forms.SignInForm",
    "add_email": "accounts.forms.ChangeEmailForm",
    "change_password": "accounts.forms.ChangePasswordForm",
    "reset_password": "accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "accounts.forms.ResetPasswordKeyForm",
    "reauthenticate": "accounts.forms.ReauthenticateForm",
}
# How many proxies in front are ours: allauth and our throttles read the client's address behind them.
ALLAUTH_TRUSTED_PROXY_COUNT = env_int("TRUSTED_PROXY_COUNT", 0)
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "studio"
EMAIL_SUBJECT_PREFIX = ""
# Only where mail is kept as files: the embedded stack, whose outbox page reads them.
EMAIL_FILE_PATH = DATA_DIR / "outbox"
DEFAULT_FROM_EMAIL = env_text("DEFAULT_FROM_EMAIL", "VoicePool <no-reply@localhost>")

LANGUAGE_CODE = "en"
LANGUAGES = [("zh-hans", _("Simplified Chinese")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "portal" / "locale"]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_HTTPONLY = True
USE_I18N = True
USE_TZ = True
TIME_ZONE = env_text("TIME_ZONE", "UTC")

STATIC_URL = "static/"
STATIC_ROOT = Path(env_text("VOICEPOOL_STATIC", str(DATA_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = Path(env_text("VOICEPOOL_MEDIA", str(DATA_DIR / "media")))
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": MEDIA_ROOT},
    },
    "staticfiles": {"BACKEND": "portal.lib.static_files.HashedFilesStorage"},
}
# Uploads go to disk beyond the first; bodies without files are refused beyond the second (BodyLimitMiddleware).
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# Every script and style is a file of ours: nothing inline, nothing from elsewhere.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "media-src": [SELF, "blob:"],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    },
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "portal.errors_views.csrf_failure"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api.auth.ApiKeyAuthentication",
        "accounts.api.auth.PageSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.permissions.HasWorkspace"],
    "DEFAULT_THROTTLE_CLASSES": ["portal.lib.throttling.WorkspaceThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.lib.json_input.StrictJsonParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "portal.lib.pagination.NewestFirst",
    "EXCEPTION_HANDLER": "portal.lib.api_problem.api_exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "VoicePool API",
    "DESCRIPTION": "Clone a voice, speak text, pay for the GPU-seconds used. Errors are problems (RFC 9457) with a "
    "stable `code`; their `detail` is in the language of Accept-Language. Every answer has an X-Request-Id to quote, "
    "and says in RateLimit how many requests may follow.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,
    # The session of our own pages is no way in for programs.
    "AUTHENTICATION_WHITELIST": ["accounts.api.auth.ApiKeyAuthentication"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "JobStateEnum": "tts.states.JobState",
        "SegmentStateEnum": "tts.states.SegmentState",
        "AttemptStateEnum": "tts.states.AttemptState",
        "JobClassEnum": "tts.states.JobClass",
        "VoiceKindEnum": "tts.models.VoiceKind",
        "WebhookDeliveryStateEnum": "accounts.models.DeliveryState",
        "CheckStateEnum": ["passed", "notice", "warning", "rejected"],
    },
    "TAGS": [
        {"name": "voices", "description": "Cloned and preset voices."},
        {"name": "jobs", "description": "Texts that are spoken."},
        {"name": "account", "description": "Balance and limits."},
        {"name": "keys", "description": "API keys."},
        {"name": "webhooks", "description": "Where your programs are told what happened."},
    ],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "portal.lib.logging.JsonFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": env_text("LOG_LEVEL", "INFO")},
    "loggers": {
        # One line per RQ job at INFO costs milliseconds between two attempts (measured) and says nothing new.
        "rq.worker": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        # They would write down what is sent and answered.
        "stripe": {"level": "WARNING"},
        "python-alipay-sdk": {"level": "WARNING"},
        # Seven lines for each document that went well.
        "weasyprint.progress": {"level": "WARNING"},
        "fontTools": {"level": "WARNING"},
    },
}

# How often each process writes the lines of the request log that have gathered; 0: whoever asks does.
REQUEST_LOG_FLUSH_S = 1.0
# Who scrapes /metrics sends it as a bearer token. Empty: there is no such page.
METRICS_TOKEN = env_text("METRICS_TOKEN", "")
# Who sells: what stands on invoices.
INVOICE_SELLER = {
    "name": env_text("INVOICE_SELLER_NAME", "VoicePool"),
    "address": env_text("INVOICE_SELLER_ADDRESS", ""),
    "tax_number": env_text("INVOICE_SELLER_TAX_NUMBER", ""),
    "email": env_text("INVOICE_SELLER_EMAIL", ""),
}
# What the leading clock does once a minute beside its own work, in apps that it must not know.
CLOCK_TASKS = [
    "portal.logs.retention.delete_old_lines",
    "accounts.services.webhook_housekeeping.look_after_webhooks",
    "portal.metrics.counting.count_what_ended",
    "billing.services.alerts.watch",
    "portal.books.reconcile_yesterday",
    "tts.services.retention.delete_expired_jobs",
    "tts.services.voice_drafts.delete_expired_drafts",
    "billing.services.invoice_run.close_due_periods",
]

# Ways to pay. A provider is offered when it is named and its keys are there.
PAYMENTS: dict[str, Any] = {
    "PROVIDERS": env_list("PAYMENT_PROVIDERS", ""),
    # Only portal.settings.embedded sets it: the provider with which no money moves.
    "TEST_PROVIDER": False,
    "TIMEOUT_S": env_int("PAYMENT_TIMEOUT_S", 10),
    # In whole units of the account's currency.
    "TOP_UP_MINIMUM": env_int("TOP_UP_MINIMUM", 10),
    "TOP_UP_MAXIMUM": env_int("TOP_UP_MAXIMUM", 100_000),
    # How long messages of providers are kept that were worked on.
    "EVENTS_KEPT_DAYS": env_int("PROVIDER_EVENTS_KEPT_DAYS", 400),
    "AUTOMATIC_TOP_UP_COOLDOWN_S": env_int("AUTOMATIC_TOP_UP_COOLDOWN_S", 3600),
    "STRIPE_SECRET_KEY": env_text("STRIPE_SECRET_KEY", ""),
    # Several while the secret is being changed.
    "STRIPE_WEBHOOK_SECRETS": env_list("STRIPE_WEBHOOK_SECRETS", ""),
    # Empty: Stripe's own.
    "STRIPE_API_ADDRESS": env_text("STRIPE_API_ADDRESS", ""),
    "ALIPAY_APP_ID": env_text("ALIPAY_APP_ID", ""),
    # PEM, RSA2: ours to sign with, and Alipay's to check what it sends.
    "ALIPAY_PRIVATE_KEY": env_text("ALIPAY_PRIVATE_KEY", ""),
    "ALIPAY_PUBLIC_KEY": env_text("ALIPAY_PUBLIC_KEY", ""),
    "ALIPAY_GATEWAY": env_text("ALIPAY_GATEWAY", "https://openapi.alipay.com/gateway.do"),
}

# Webhooks to customers (accounts.webhooks).
WEBHOOKS: dict[str, Any] = {
    # What customers' secrets are derived with; empty: SECRET_KEY. A new one makes every customer's secret a new one.
    "SIGNING_KEY": env_text("WEBHOOK_SIGNING_KEY", ""),
    # Networks that may be called beside public addresses, such as "10.8.0.0/16". Whoever has an account reaches them.
    "ALLOWED_NETWORKS": env_list("WEBHOOK_ALLOWED_NETWORKS", ""),
    # Authorities that are trusted beside the system's, as PEM.
    "CA_FILE": env_text("WEBHOOK_CA_FILE", ""),
    # Only portal.settings.embedded sets it: plain HTTP to this machine itself, for trying things out.
    "LOOPBACK_HTTP": False,
}

# What the product does, in numbers. A rule's own module reads these and nothing else repeats them.
VOICEPOOL: dict[str, Any] = {
    "CPU_ENGINE": env_text("VOICEPOOL_CPU_ENGINE", "kokoro"),
    # Whether the clock has the preset voices speak a sample each, for the landing page.
    "PRESET_SAMPLES": env_bool("VOICEPOOL_PRESET_SAMPLES", True),
    "WELCOME_GPU_SECONDS": env_int("WELCOME_GPU_SECONDS", 300),
    # How much of one customer's money one operator may move alone within so many hours, all acts together: 100 yuan.
    "ADJUSTMENT_NEEDS_SECOND_MICROS": env_int("ADJUSTMENT_NEEDS_SECOND_MICROS", 100_000_000),
    "ADJUSTMENT_WINDOW_HOURS": env_int("ADJUSTMENT_WINDOW_HOURS", 24),
    "OUTBOX": env_bool("VOICEPOOL_OUTBOX", False),
    "REQUESTS_PER_MINUTE": env_int("REQUESTS_PER_MINUTE", 300),
    "SUBMITS_PER_MINUTE": env_int("SUBMITS_PER_MINUTE", 120),
    # Of all quotes and submissions together, on the pages and in the API: fifteen of the longest texts.
    "PRICED_CHARACTERS_PER_MINUTE": env_int("PRICED_CHARACTERS_PER_MINUTE", 3_000_000),
    # A whole request with files: tts.audio.limits.MAX_UPLOAD_BYTES and room for the form around it.
    "UPLOAD_BYTES": env_int("UPLOAD_BYTES", 16 * 1024 * 1024),
    "FAILED_KEYS_PER_MINUTE": env_int("FAILED_KEYS_PER_MINUTE", 30),
    # Each takes about a second of a processor, on the pages and in the API together.
    "DOCUMENTS_PER_MINUTE": env_int("DOCUMENTS_PER_MINUTE", 20),
    "SPOKEN_CONSENT": env_bool("VOICEPOOL_SPOKEN_CONSENT", False),
    "VOICE_CHECKS_PER_MINUTE": env_int("VOICE_CHECKS_PER_MINUTE", 20),
    "VOUCHER_TRIES_PER_MINUTE": env_int("VOUCHER_TRIES_PER_MINUTE", 10),
    "VOICES_PER_WORKSPACE": env_int("VOICES_PER_WORKSPACE", 50),
    "QUEUED_JOBS_PER_WORKSPACE": env_int("QUEUED_JOBS_PER_WORKSPACE", 20),
    "OPEN_STREAMS_PER_PROCESS": env_int("OPEN_STREAMS_PER_PROCESS", 24),
    "OPEN_STREAMS_PER_WORKSPACE": env_int("OPEN_STREAMS_PER_WORKSPACE", 12),
    # Files of audio that a web process makes at once; each takes a processor.
    "RENDERINGS_PER_PROCESS": env_int("RENDERINGS_PER_PROCESS", 2),
    # Live streams that a web process encodes (mp3, opus) at once; each is a child process of 40 MB.
    "LIVE_ENCODERS_PER_PROCESS": env_int("LIVE_ENCODERS_PER_PROCESS", 8),
    "LIVE_ENCODERS_PER_WORKSPACE": env_int("LIVE_ENCODERS_PER_WORKSPACE", 4),
    # Who makes the speech, for the label in every file: a name, or the code that the authority gave (27 characters).
    "AIGC_PRODUCER": env_matching("AIGC_PRODUCER", "VoicePool", r"[!#-&(-\[\]-~]{1,200}"),
    # What is heard of the label where a workspace has no rule of its own: none, tone or spoken.
    "EXPLICIT_LABEL": env_matching("EXPLICIT_LABEL", "none", "none|tone|spoken"),
    # nginx's internal location of MEDIA_ROOT, such as "/protected": it then sends the files itself.
    "ACCEL_REDIRECT": env_text("VOICEPOOL_ACCEL_REDIRECT", ""),
}
