"""Part of a double: a language model that draws tokens from torch's global generator.

As many as six for each token of text. Each step goes through `Qwen2Encoder.forward_one_step`, whose mask newer
transformers take amiss.
"""

import threading
import time
from types import SimpleNamespace

import torch
import transformers

END_OF_PROMPT = 151646
TOKENS_PER_TEXT_TOKEN = 6
SPEECH_TOKENS = 6561
MASK_CHANGED = (4, 53)


def _qwen2(*, inputs_embeds, attention_mask, output_hidden_states, return_dict, use_cache, past_key_values):
    """Hidden states that say what went in, and something else where a mask is misread."""
    assert output_hidden_states
    assert return_dict
    assert use_cache
    misread = attention_mask is not None and _transformers() >= MASK_CHANGED and past_key_values is not None
    steps = 0 if past_key_values is None else past_key_values
    return SimpleNamespace(
        hidden_states=[inputs_embeds + (1000 if misread else 0)], past_key_values=steps + 1
    )


def _transformers():
    return tuple(int(part) for part in transformers.__version__.split(".")[:2])


class Qwen2Encoder:
    def __init__(self, pretrain_path):
        self.model = _qwen2

    def forward_one_step(self, xs, masks, cache=None):
        outs = self.model(
            inputs_embeds=xs,
            attention_mask=masks[:, -1, :],
            output_hidden_states=True,
            return_dict=True,
            use_cache=True,
            past_key_values=cache,
        )
        return outs.hidden_states[-1], outs.past_key_values


class Qwen2LM:
    def __init__(self, behaviour):
        self.llm = Qwen2Encoder("")
        self.behaviour = behaviour

    def inference(
        self,
        text,
        text_len,
        prompt_text,
        prompt_text_len,
        prompt_speech_token,
        prompt_speech_token_len,
        embedding,
        sampling=25,
        max_token_text_ratio=20,
        min_token_text_ratio=2,
        uuid="",
    ):
        self._check(torch.concat([prompt_text, text], dim=1))
        count = int(text_len)
        entry = self.behaviour.current
        stop = {"no_tokens": 0, "never_stop": count * 20, "stop_early": entry.get("after", 1)}.get(
            entry["do"], count * TOKENS_PER_TEXT_TOKEN
        )
        # What was read changes what is said: prompt, voice and all.
        bias = int(prompt_text.sum()) + int(text.sum()) + int(prompt_speech_token.sum())
        cache = None
        for number in range(stop):
            self._misbehave(entry, number)
            mask = torch.ones((1, 1, 1), dtype=torch.bool)
            hidden, cache = self.llm.forward_one_step(torch.full((1, 1, 1), float(bias % 97)), mask, cache)
            # From 3 on: the first ones are silent tokens.
            yield 3 + (int(torch.randint(SPEECH_TOKENS, (1,))) + int(hidden.sum())) % (SPEECH_TOKENS - 3)
            if entry["do"] == "slow":
                time.sleep(entry["seconds"])  # a model that was told to be slow

    def _check(self, text):
        """CosyVoice2 reads anything."""

    @staticmethod
    def _misbehave(entry, number):
        if entry["do"] == "wedge":
            threading.Event().wait()
        if entry["do"] == "llm_error" and number == entry.get("after", 0):
            kind = torch.OutOfMemoryError if entry.get("memory") else RuntimeError
            raise kind("the double was told to break")


class CosyVoice3LM(Qwen2LM):
    def _check(self, text):
        assert END_OF_PROMPT in text, "<|endofprompt|> not detected"
