"""The customers' pages of speech: studio, voices, history, jobs, and their media."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from tts.views import (
    document,
    history,
    jobs,
    media,
    output_settings,
    pronunciations,
    revisions,
    studio,
    subtitles,
    voice_check,
    voice_drafts,
    voice_versions,
    voices,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("studio/", studio.studio, name="studio"),
    path("studio/quote/", studio.quote_page, name="quote_page"),
    path("studio/document/", document.document, name="document"),
    path("studio/document/text/", document.document_text, name="document_text"),
    path("pronunciations/", pronunciations.pronunciations, name="pronunciations"),
    path("pronunciations/save/", pronunciations.pronunciation_save, name="pronunciation_save"),
    path("pronunciations/delete/", pronunciations.pronunciation_delete, name="pronunciation_delete"),
    path("pronunciations/import/", pronunciations.pronunciation_import, name="pronunciation_import"),
    path("pronunciations/pronunciations.csv", pronunciations.pronunciation_table, name="pronunciation_table"),
    path(
        "pronunciations/versions/<int:number>/restore/",
        pronunciations.pronunciation_restore,
        name="pronunciation_restore",
    ),
    path("voices/", voices.voices, name="voices"),
    path("voices/new/", voices.voice_new, name="voice_new"),
    path("voices/check/", voice_check.voice_check, name="voice_check"),
    path("voices/<uuid:draft_id>/draft/", voice_drafts.voice_draft, name="voice_draft"),
    path("voices/<uuid:draft_id>/draft/audio", voice_drafts.voice_draft_audio, name="voice_draft_audio"),
    path("voices/<uuid:draft_id>/draft/price/", voice_drafts.voice_draft_price, name="voice_draft_price"),
    path("voices/<uuid:draft_id>/draft/speak/", voice_drafts.voice_draft_speak, name="voice_draft_speak"),
    path("voices/<uuid:draft_id>/draft/save/", voice_drafts.voice_draft_save, name="voice_draft_save"),
    path(
        "voices/<uuid:draft_id>/draft/discard/", voice_drafts.voice_draft_discard, name="voice_draft_discard"
    ),
    path("voices/<uuid:voice_id>/", voices.voice, name="voice"),
    path("voices/<uuid:voice_id>/rename/", voices.voice_rename, name="voice_rename"),
    path("voices/<uuid:voice_id>/share/", voices.voice_share, name="voice_share"),
    path("voices/<uuid:voice_id>/delete/", voices.voice_delete, name="voice_delete"),
    path("voices/<uuid:voice_id>/replace/", voice_versions.voice_replace, name="voice_replace"),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>/use/",
        voice_versions.voice_version_use,
        name="voice_version_use",
    ),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>/delete/",
        voice_versions.voice_version_delete,
        name="voice_version_delete",
    ),
    path(
        "voices/<uuid:voice_id>/versions/<int:number>/audio",
        voice_versions.voice_version_audio,
        name="voice_version_audio",
    ),
    path("voices/<uuid:voice_id>/audio", media.voice_audio, name="voice_audio"),
    path("workspace/output/", output_settings.output_settings, name="output_settings"),
    path("history/", history.history, name="history"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/repeat/", studio.job_repeat, name="job_repeat"),
    path("jobs/<uuid:job_id>/revise/", revisions.job_revise, name="job_revise"),
    path("jobs/<uuid:job_id>/cancel/", jobs.job_cancel, name="job_cancel"),
    path("jobs/<uuid:job_id>/delete/", jobs.job_delete, name="job_delete"),
    path("jobs/<uuid:job_id>/audio", media.job_audio_page, name="job_audio_page"),
    path("jobs/<uuid:job_id>/subtitles", subtitles.job_subtitles_page, name="job_subtitles_page"),
    path("jobs/<uuid:job_id>/events", media.job_events_page, name="job_events_page"),
    path("jobs/<uuid:job_id>/stream", media.job_stream_page, name="job_stream_page"),
]
