from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from portal.console import device_views, job_views, log_views, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="console"),
    path("devices/", device_views.devices, name="console_devices"),
    path("devices.json", device_views.devices_json, name="console_devices_json"),
    path("devices/<int:device_id>/", device_views.device, name="console_device"),
    path("devices/<int:device_id>/<slug:act>/", device_views.device_act, name="console_device_act"),
    path("queue/", views.queue, name="console_queue"),
    path("jobs/", job_views.jobs, name="console_jobs"),
    path("jobs/<uuid:job_id>/", job_views.job, name="console_job"),
    path("jobs/<uuid:job_id>/<slug:act>/", job_views.job_act, name="console_job_act"),
    path("log/", log_views.log, name="console_log"),
    path("audit/", views.audit, name="console_audit"),
]
