"""The languages that a voice can be recorded in: their names, a text to read for each, and one for the voice to say.

The texts to read take seven to ten seconds, ask a question (a rise of pitch), and hold most sounds of their language.
The others are short: a voice says them before it is saved, and whoever listens pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Language:
    """`code` is ISO 639-1; `reading` and `test` stand in the language itself and are never translated."""

    code: str
    name: str | Promise
    reading: str
    test: str


LANGUAGES: Final = (
    Language(
        "zh",
        _("Chinese"),
        "早上好！今天天气不错，我打算沿着河边慢慢走一圈，顺路买些新鲜的水果，再去书店看看。你愿意和我一起去吗？",
        "这就是新的声音。我们明天早上出发，你觉得听起来像吗？",
    ),
    Language(
        "en",
        _("English"),
        "Good morning! The weather is lovely today, so I am going to walk along the river, "
        "buy some fresh fruit, and look into the bookshop. Would you like to join me?",
        "This is the new voice. We are leaving tomorrow morning. Does it sound right to you?",
    ),
    Language(
        "ja",
        _("Japanese"),
        "おはようございます。今日はとてもいい天気なので、川沿いをゆっくり歩いて、果物を買ってから本屋に寄るつもりです。一緒に行きませんか？",
        "これが新しい声です。明日の朝に出発します。似ていると思いますか？",
    ),
    Language(
        "ko",
        _("Korean"),
        "안녕하세요. 오늘은 날씨가 참 좋아서 강가를 천천히 걷고, 신선한 과일을 사고, "
        "서점에도 들를 생각이에요. 같이 가실래요?",
        "이것이 새로운 목소리입니다. 우리는 내일 아침에 출발해요. 비슷하게 들리나요?",
    ),
    Language(
        "de",
        _("German"),
        "Guten Morgen! Heute ist so schönes Wetter, dass ich am Fluss spazieren gehe, "
        "frisches Obst kaufe und noch in der Buchhandlung vorbeischaue. Möchtest du mitkommen?",
        "Das ist die neue Stimme. Morgen früh fahren wir los. Klingt sie richtig?",
    ),
    Language(
        "fr",
        _("French"),
        "Bonjour ! Il fait si beau aujourd'hui que je vais marcher le long de la rivière, "
        "acheter des fruits frais et passer à la librairie. Voulez-vous venir avec moi ?",
        "Voici la nouvelle voix. Nous partons demain matin. Vous semble-t-elle juste ?",
    ),
    Language(
        "es",
        _("Spanish"),
        "¡Buenos días! Hoy hace un tiempo estupendo, así que voy a pasear junto al río, "
        "comprar fruta fresca y pasar por la librería. ¿Quieres venir conmigo?",
        "Esta es la nueva voz. Salimos mañana por la mañana. ¿Te suena bien?",
    ),
    Language(
        "it",
        _("Italian"),
        "Buongiorno! Oggi il tempo è splendido, perciò farò una passeggiata lungo il fiume, "
        "comprerò della frutta fresca e passerò in libreria. Vuoi venire con me?",
        "Questa è la nuova voce. Partiamo domani mattina. Ti sembra giusta?",
    ),
    Language(
        "pt",
        _("Portuguese"),
        "Bom dia! Hoje o tempo está ótimo, por isso vou caminhar junto ao rio, "
        "comprar fruta fresca e passar na livraria. Quer vir comigo?",
        "Esta é a nova voz. Partimos amanhã de manhã. Parece-lhe bem?",
    ),
    Language(
        "ru",
        _("Russian"),
        "Доброе утро! Сегодня прекрасная погода, поэтому я пройдусь вдоль реки, "
        "куплю свежих фруктов и загляну в книжный магазин. Хотите пойти со мной?",
        "Это новый голос. Мы выезжаем завтра утром. Он звучит похоже?",
    ),
)

BY_CODE: Final = {language.code: language for language in LANGUAGES}


def language_name(code: str) -> str | Promise:
    """The language's name in the reader's language; "" for one that is not known or not set."""
    language = BY_CODE.get(code)
    return language.name if language else ""


def first_sentence(code: str, *, else_in: str) -> str:
    """What a voice of this language says first; in the language `else_in`, or English, where there is none for it."""
    return next(BY_CODE[each].test for each in (code, else_in, "en") if each in BY_CODE)
