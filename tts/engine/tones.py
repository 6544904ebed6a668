"""How Mandarin tones change in speech: 一 and 不, two third tones in a row, light syllables.

It begins with what pypinyin says of each character by itself or in the phrases that it knows; the words are jieba's.
The rules are those of the standard language: 一 rises before a fourth tone and falls before the others, 不 rises before
a fourth tone, both are light between two of the same verb; a third tone rises before another one inside a word, and as
a word of a single syllable before the next one. Numbers that are read figure by figure keep 一 as it is.
"""

from __future__ import annotations

from collections.abc import Sequence


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


COUNTED = frozenset("零〇一二三四五六七八九十百千万亿点第年月号")
# Doubled, these are light at their end: kinship and verbs. 天天, 慢慢 and the like are not.
_REPEATED = frozenset("妈爸哥姐弟妹爷奶叔舅姑伯公婆太宝星娃谢看走想试说听等坐聊谈问找尝读写唱玩歇笑猜")
_LIGHT = _words(
    """
    东西 地方 朋友 先生 学生 喜欢 意思 知道 漂亮 时候 认识 便宜 窗户 告诉 消息 舒服 衣服 月亮 太阳
    眼睛 耳朵 头发 嘴巴 鼻子 孩子 儿子 妻子 丈夫 关系 事情 什么 怎么 那么 这么 咱们 打算 商量 麻烦
    明白 清楚 休息 客气 干净 热闹 聪明 老实 厉害 暖和 凉快 马虎 糊涂 迷糊 力气 脾气 福气 名字 故事
    葡萄 豆腐 萝卜 石头 木头 馒头 骨头 里头 外头 前头 后头 上头 下头 亲戚 大夫 师傅 姑娘 媳妇 行李
    钥匙 包袱 庄稼 粮食 点心 胳膊 指甲 招呼 答应 收拾 打听 打扮 打量 佩服 耽误 折腾 琢磨 生意 买卖
    位置 动静 笑话 日子 样子 房子 桌子 椅子 杯子 帽子 裤子 鞋子 院子 屋子 村子 句子 本子 叶子 果子
    """
)
# A word by themselves they are light too, but for where a sentence begins.
_AFTER_OTHERS = {"里": "li5", "得": "de5"}
_NOT_LIGHT_ER = _words("女儿 婴儿 幼儿 孤儿 健儿 胎儿 少儿 男儿 小儿 育儿 托儿 患儿 新生儿 少年儿")


def spoken_tones(words: Sequence[str], syllables: Sequence[str]) -> list[str]:
    """The syllables of these words ("ni3", "hao3"; one per character) as they are said one after the other."""
    said = list(syllables)
    run = "".join(words)
    starts: list[int] = []
    start = 0
    for word in words:
        starts.append(start)
        _lighten(word, said, start)
        start += len(word)
    firsts = frozenset(starts)
    _third_tones(words, starts, said)
    for index, character in enumerate(run[:-1]):
        if character in "一不" and index + 1 < len(run):
            _change_yi_bu(run, said, index, is_last_in_word=index + 1 in firsts and index not in firsts)
    return said


def _lighten(word: str, said: list[str], start: int) -> None:
    end = start + len(word) - 1
    if len(word) == 2 and (
        word in _LIGHT or (word[0] == word[1] and word[0] in _REPEATED) or word[1] == "里"
    ):
        said[end] = f"{said[end][:-1]}5"
    elif start and word in _AFTER_OTHERS and said[start] in ("li3", "de2"):
        said[start] = _AFTER_OTHERS[word]
    elif len(word) > 1 and word.endswith("儿") and word not in _NOT_LIGHT_ER and said[end][:2] == "er":
        said[end] = "er5"


def _third_tones(words: Sequence[str], starts: Sequence[int], said: list[str]) -> None:
    for word, start in zip(words, starts, strict=True):
        for index in range(start, start + len(word) - 1):
            _rise_before_third(said, index)
    for number in range(len(words) - 1):
        if len(words[number]) == 1:
            _rise_before_third(said, starts[number + 1] - 1)


def _rise_before_third(said: list[str], index: int) -> None:
    if said[index].endswith("3") and said[index + 1].endswith("3"):
        said[index] = f"{said[index][:-1]}2"


def _change_yi_bu(run: str, said: list[str], index: int, *, is_last_in_word: bool) -> None:
    before, after = run[index - 1] if index else "", run[index + 1]
    if before and before == after:
        said[index] = f"{said[index][:-1]}5"
        return
    if run[index] == "不":
        if said[index + 1].endswith("4") and said[index].startswith("bu"):
            said[index] = "bu2"
        return
    if is_last_in_word or after in COUNTED or before in COUNTED or not said[index].startswith("yi"):
        return
    said[index] = "yi2" if said[index + 1].endswith("4") or after == "个" else "yi4"
