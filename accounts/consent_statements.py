"""What a customer agrees to when a voice is cloned: the exact words, by version and language.

The words stand here, not in the translation catalogue, because a record of consent quotes them. A version
that was ever shown is never changed or removed: a new wording is a new version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CURRENT_VERSION: Final = "1"
FALLBACK_LOCALE: Final = "en"

STATEMENTS: Final[dict[str, dict[str, str]]] = {
    "1": {
        "en": (
            "The voice in this recording is my own, or the person who speaks has expressly allowed me to clone it "
            "and to make speech with it. I will not use it to deceive, to harm or to impersonate anyone, nor for "
            "anything that the law forbids. I know that this statement is kept together with my account, the time, "
            "my network address and a fingerprint of the recording, also after the voice is deleted."
        ),
        "zh-hans": (
            "这段录音中的声音是我本人的声音，或者说话人已明确允许我克隆其声音并用它合成语音。"
            "我不会用它欺骗、伤害或冒充任何人，也不会用于法律禁止的任何用途。"
            "我知道，本声明将与我的账户、时间、网络地址和录音指纹一起保存，音色删除后仍会保留。"
        ),
    },
}

# What the person who is cloned says aloud where the operator asks for it; of the same versions and languages.
SPOKEN_SENTENCES: Final[dict[str, dict[str, str]]] = {
    "1": {
        "en": (
            "This is my own voice. I agree that it is cloned here, and that speech is made with it. "
            "Nobody has forced me to say this."
        ),
        "zh-hans": "这是我本人的声音。我同意在这里克隆我的声音，并用它合成语音。我是自愿说这段话的。",
    },
}


@dataclass(frozen=True)
class ConsentStatement:
    """`text` is agreed to by a tick; `spoken` is the sentence to say aloud."""

    version: str
    locale: str
    text: str
    spoken: str


def current_statement(locale: str | None) -> ConsentStatement:
    """The wording that is shown and agreed to today; English where there is none in `locale`."""
    texts = STATEMENTS[CURRENT_VERSION]
    wanted = (locale or "").lower().replace("_", "-")
    chosen = (
        wanted if wanted in texts else "zh-hans" if wanted in ("zh", "zh-cn", "zh-sg") else FALLBACK_LOCALE
    )
    return ConsentStatement(
        version=CURRENT_VERSION,
        locale=chosen,
        text=texts[chosen],
        spoken=SPOKEN_SENTENCES[CURRENT_VERSION][chosen],
    )
