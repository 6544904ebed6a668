from __future__ import annotations

from django.urls import path

from tts.api import (
    documents,
    jobs,
    pronunciations,
    quotes,
    revisions,
    subtitles,
    voice_check,
    voice_versions,
    voices,
)

urlpatterns = [
    path("voices", voices.VoicesView.as_view(), name="api_voices"),
    path("voices/check", voice_check.VoiceCheckView.as_view(), name="api_voice_check"),
    path("voices/<uuid:voice_id>", voices.VoiceView.as_view(), name="api_voice"),
    path("voices/<uuid:voice_id>/audio", voices.VoiceAudioView.as_view(), name="api_voice_audio"),
    path(
        "voices/<uuid:voice_id>/versions",
        voice_versions.VoiceVersionsView.as_view(),
        name="api_voice_versions",
    ),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>",
        voice_versions.VoiceVersionView.as_view(),
        name="api_voice_version",
    ),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>/use",
        voice_versions.VoiceVersionUseView.as_view(),
        name="api_voice_version_use",
    ),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>/audio",
        voice_versions.VoiceVersionAudioView.as_view(),
        name="api_voice_version_audio",
    ),
    path("jobs", jobs.JobsView.as_view(), name="api_jobs"),
    path("jobs/<uuid:job_id>", jobs.JobView.as_view(), name="api_job"),
    path("jobs/<uuid:job_id>/cancel", jobs.JobCancelView.as_view(), name="api_job_cancel"),
    path("jobs/<uuid:job_id>/revisions", revisions.RevisionsView.as_view(), name="api_job_revisions"),
    path(
        "jobs/<uuid:job_id>/revisions/quote",
        revisions.RevisionQuoteView.as_view(),
        name="api_job_revision_quote",
    ),
    path("jobs/<uuid:job_id>/audio", jobs.JobAudioView.as_view(), name="api_job_audio"),
    path("jobs/<uuid:job_id>/stream", jobs.JobStreamView.as_view(), name="api_job_stream"),
    path("jobs/<uuid:job_id>/events", jobs.JobEventsView.as_view(), name="api_job_events"),
    path("documents", documents.DocumentsView.as_view(), name="api_documents"),
    path("jobs/<uuid:job_id>/subtitles", subtitles.JobSubtitlesView.as_view(), name="api_job_subtitles"),
    path("pronunciations", pronunciations.PronunciationsView.as_view(), name="api_pronunciations"),
    path(
        "pronunciations/versions",
        pronunciations.PronunciationVersionsView.as_view(),
        name="api_pronunciation_versions",
    ),
    path(
        "pronunciations/versions/<int:number>",
        pronunciations.PronunciationVersionView.as_view(),
        name="api_pronunciation_version",
    ),
    path("quotes", quotes.QuotesView.as_view(), name="api_quotes"),
]
