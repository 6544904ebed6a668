from django.apps import AppConfig


class LogsConfig(AppConfig):
    name = "portal.logs"
    label = "logs"
