"""Documents: what a file says, as texts of jobs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, cast

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView
from portal.lib.openapi import INVALID_INPUT, MALFORMED_FORM, NOT_A_TYPE, TOO_LARGE, problems
from portal.lib.strict_fields import StrictSerializer
from tts.api.serializers import validated
from tts.documents import errors
from tts.documents.blocks import Document
from tts.documents.limits import MAX_DOCUMENT_CHARACTERS, MAX_UPLOAD_BYTES
from tts.services.documents import read_document


class NewDocumentSerializer(StrictSerializer):
    """A form (multipart/form-data)."""

    file = serializers.FileField(
        allow_empty_file=True,  # the document's own rules say it better, with a code
        help_text=f"A document: {errors.FORMATS}, at most {MAX_UPLOAD_BYTES // 1024**2} MiB and "
        f"{MAX_DOCUMENT_CHARACTERS} characters. The kind is told by the content.",
    )


class DocumentChapterSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Empty for what stands before the first heading.")
    characters = serializers.IntegerField(help_text="As limits and prices count them.")
    text = serializers.CharField(
        help_text="As it can be sent as a job's text; its title stands first, as `# title`."
    )


class DocumentSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(help_text="Empty where the document says none.")
    encoding = serializers.CharField(help_text="Of a plain text, as it was told; else empty.")
    characters = serializers.IntegerField()
    chapters = DocumentChapterSerializer(many=True)


class DocumentsView(ApiView):
    parser_classes = [MultiPartParser]
    field_names = MappingProxyType({errors.DocumentRefused.field: "file"})

    @property
    def body_limit_bytes(self) -> int:
        limit: int = settings.VOICEPOOL["UPLOAD_BYTES"]
        return limit

    @extend_schema(
        operation_id="documents_read",
        tags=["jobs"],
        summary="Read a document",
        description="The chapters of a file, each as a text that can be spoken. Pictures, notes, page numbers and the "
        "small readings above characters are left out. Nothing is stored and nothing is charged.",
        request={"multipart/form-data": NewDocumentSerializer},
        responses={
            200: DocumentSerializer,
            **problems(
                INVALID_INPUT,
                MALFORMED_FORM,
                NOT_A_TYPE,
                TOO_LARGE,
                errors.DocumentTooLarge,
                *errors.REFUSAL_BY_CODE.values(),
                errors.TooManyDocuments,
                errors.DocumentsNotRead,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        form = validated(NewDocumentSerializer, request.data)
        upload = cast("UploadedFile[Any]", form["file"])
        return Response(document_json(read_document(workspace=require_workspace(request), upload=upload)))


def document_json(document: Document) -> dict[str, Any]:
    """The document as DocumentSerializer describes it."""
    chapters = [
        {"title": chapter.title, "characters": chapter.characters, "text": chapter.text}
        for chapter in document.chapters
    ]
    return {
        "title": document.title,
        "encoding": document.encoding,
        "characters": sum(chapter["characters"] for chapter in chapters),
        "chapters": chapters,
    }
