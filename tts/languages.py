"""The languages that a voice can be recorded in: their names, and a text to read for each.

The texts take seven to ten seconds, ask a question (a rise of pitch), and hold most sounds of their language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Language:
    """`code` is ISO 639-1; `reading` stands in the language itself and is never translated."""

    code: str
    name: str | Promise
    reading: str


LANGUAGES: Final = (
    Language(
        "zh",
        _("Chinese"),
        "早上好！今天天气不错，我打算沿着河边慢慢走一圈，顺路买些新鲜的水果，再去书店看看。你愿意和我一起去吗？",
    ),
    Language(
        "en",
        _("English"),
        "Good morning! The weather is lovely today, so I am going to walk along the river, "
        "buy some fresh fruit, and look into the bookshop. Would you like to join me?",
    ),
    Language(
        "ja",
        _("Japanese"),
        "おはようございます。今日はとてもいい天気なので、川沿いをゆっくり歩いて、果物を買ってから本屋に寄るつもりです。一緒に行きませんか？",
    ),
    Language(
        "ko",
        _("Korean"),
        "안녕하세요. 오늘은 날씨가 참 좋아서 강가를 천천히 걷고, 신선한 과일을 사고, "
        "서점에도 들를 생각이에요. 같이 가실래요?",
    ),
    Language(
        "de",
        _("German"),
        "Guten Morgen! Heute ist so schönes Wetter, dass ich am Fluss spazieren gehe, "
        "frisches Obst kaufe und noch in der Buchhandlung vorbeischaue. Möchtest du mitkommen?",
    ),
    Language(
        "fr",
        _("French"),
        "Bonjour ! Il fait si beau aujourd'hui que je vais marcher le long de la rivière, "
        "acheter des fruits frais et passer à la librairie. Voulez-vous venir avec moi ?",
    ),
    Language(
        "es",
        _("Spanish"),
        "¡Buenos días! Hoy hace un tiempo estupendo, así que voy a pasear junto al río, "
        "comprar fruta fresca y pasar por la librería. ¿Quieres venir conmigo?",
    ),
    Language(
        "it",
        _("Italian"),
        "Buongiorno! Oggi il tempo è splendido, perciò farò una passeggiata lungo il fiume, "
        "comprerò della frutta fresca e passerò in libreria. Vuoi venire con me?",
    ),
    Language(
        "pt",
        _("Portuguese"),
        "Bom dia! Hoje o tempo está ótimo, por isso vou caminhar junto ao rio, "
        "comprar fruta fresca e passar na livraria. Quer vir comigo?",
    ),
    Language(
        "ru",
        _("Russian"),
        "Доброе утро! Сегодня прекрасная погода, поэтому я пройдусь вдоль реки, "
        "куплю свежих фруктов и загляну в книжный магазин. Хотите пойти со мной?",
    ),
)

BY_CODE: Final = {language.code: language for language in LANGUAGES}


def language_name(code: str) -> str | Promise:
    """The language's name in the reader's language; "" for one that is not known or not set."""
    language = BY_CODE.get(code)
    return language.name if language else ""
