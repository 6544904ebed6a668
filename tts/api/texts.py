"""How what is wrong with a text is described."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.lib.openapi import ProblemSerializer
from tts.text.annotations import Problem
from tts.text.ssml import Fault


class AnnotationMistakeSerializer(serializers.Serializer[Any]):
    problem = serializers.ChoiceField(
        choices=sorted({problem.value for problem in Problem} | {fault.value for fault in Fault})
    )
    start = serializers.IntegerField(
        help_text="The first character at fault: Unicode code points of the text as it was sent, from 0."
    )
    end = serializers.IntegerField(help_text="The first character after it.")
    message = serializers.CharField(help_text="What is wrong, in the language of Accept-Language.")
    allowed = serializers.ListField(
        child=serializers.CharField(), help_text="What may stand there; empty where that is no list."
    )
    suggestion = serializers.CharField(help_text="What was probably meant; empty: nothing is near.")


class TextProblemSerializer(ProblemSerializer):
    """Why a text is refused; with every mistake in its annotations, or the first in its SSML."""

    mistakes = AnnotationMistakeSerializer(many=True, required=False)
    speakers = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Those without a voice, with `speaker_without_voice`.",
    )
