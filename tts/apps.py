from django.apps import AppConfig


class TtsConfig(AppConfig):
    name = "tts"
    default_auto_field = "django.db.models.BigAutoField"
