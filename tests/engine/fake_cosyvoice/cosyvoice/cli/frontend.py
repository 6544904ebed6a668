"""Part of a double: text and clips to tensors of the right shapes."""

import logging
import re
import socket
from types import GeneratorType

import torch

from cosyvoice.utils.file_utils import load_wav

END_OF_PROMPT = 151646
_TOKEN = re.compile(r"<\|endofprompt\|>|\[[A-Za-z_-]+\d?\]|</?(?:strong|laughter)>|[a-z]{1,4}|.", re.S | re.I)


class Tokenizer:
    """A character of Chinese is a token, and so are up to four letters."""

    def encode(self, text, allowed_special="all"):
        return [
            END_OF_PROMPT if part == "<|endofprompt|>" else 1 + hash_of(part) % 150000
            for part in _TOKEN.findall(text)
        ]


def hash_of(text):
    """The same in every process."""
    number = 7
    for character in text:
        number = (number * 31 + ord(character)) % 1_000_003
    return number


class CosyVoiceFrontEnd:
    def __init__(
        self,
        get_tokenizer,
        feat_extractor,
        campplus_model,
        speech_tokenizer_model,
        spk2info="",
        allowed_special="all",
    ):
        self.tokenizer = get_tokenizer()
        self.device = torch.device("cpu")
        self.spk2info = {}
        self.allowed_special = allowed_special
        try:
            # As wetext does: without its files it asks a hub for them, and is done without when there is none.
            socket.create_connection(("192.0.2.1", 443), timeout=20).close()
            self.text_frontend = "wetext"
        except OSError:
            self.text_frontend = ""

    def _extract_text_token(self, text):
        if isinstance(text, GeneratorType):
            return text, torch.tensor([0], dtype=torch.int32)
        tokens = torch.tensor(
            [self.tokenizer.encode(text, allowed_special=self.allowed_special)], dtype=torch.int32
        )
        return tokens, torch.tensor([tokens.shape[1]], dtype=torch.int32)

    def _extract_speech_token(self, prompt_wav):
        speech = load_wav(prompt_wav, 16000)
        assert speech.shape[1] / 16000 <= 30, "do not support extract speech token for audio longer than 30s"
        blocks = speech[0, : speech.shape[1] // 640 * 640].reshape(-1, 640)
        tokens = (blocks.abs().sum(dim=1) * 100).to(torch.int32).remainder(6561).unsqueeze(0)
        return tokens, torch.tensor([tokens.shape[1]], dtype=torch.int32)

    def _extract_spk_embedding(self, prompt_wav):
        """(1, 192): how strong each of 192 bands is, about the mean: alike for like voices, whatever they say."""
        power = torch.fft.rfft(load_wav(prompt_wav, 16000)[0]).abs().square().reshape(1, -1)
        bands = torch.nn.functional.adaptive_avg_pool1d(power, 192)
        bands = torch.log10(bands / bands.max() + 1e-5)
        return (bands - bands.mean()).float()

    def _extract_speech_feat(self, prompt_wav):
        speech = load_wav(prompt_wav, 24000)[0]
        frames = speech[: len(speech) // 480 * 480].reshape(-1, 480)
        feat = frames.abs().mean(dim=1, keepdim=True).expand(-1, 80).contiguous().unsqueeze(0)
        return feat, torch.tensor([feat.shape[1]], dtype=torch.int32)

    def text_normalize(self, text, split=True, text_frontend=True):
        if isinstance(text, GeneratorType):
            return [text]
        if "<|" in text and "|>" in text:
            text_frontend = False
        if text_frontend is False or text == "":
            return [text] if split is True else text
        text = text.strip().replace("2", "二")
        parts = [
            part
            for part in re.findall(r"[^。？！.?!]*[。？！.?!]|[^。？！.?!]+$", text)
            if re.search(r"\w", part)
        ]
        text[0]
        return parts if split is True else text

    def frontend_zero_shot(self, tts_text, prompt_text, prompt_wav, resample_rate, zero_shot_spk_id):
        tokens, count = self._extract_text_token(tts_text)
        if zero_shot_spk_id == "":
            model_input = self._model_input(prompt_text, prompt_wav)
        else:
            model_input = {**self.spk2info[zero_shot_spk_id]}
        model_input["text"], model_input["text_len"] = tokens, count
        return model_input

    def _model_input(self, prompt_text, prompt_wav):
        prompt_tokens, prompt_count = self._extract_text_token(prompt_text)
        feat, feat_len = self._extract_speech_feat(prompt_wav)
        speech, speech_len = self._extract_speech_token(prompt_wav)
        # Two frames for each token, whatever the lengths came out as.
        count = min(feat.shape[1] // 2, speech.shape[1])
        feat, feat_len[:] = feat[:, : 2 * count], 2 * count
        speech, speech_len[:] = speech[:, :count], count
        embedding = self._extract_spk_embedding(prompt_wav)
        return {
            "prompt_text": prompt_tokens,
            "prompt_text_len": prompt_count,
            "llm_prompt_speech_token": speech,
            "llm_prompt_speech_token_len": speech_len,
            "flow_prompt_speech_token": speech,
            "flow_prompt_speech_token_len": speech_len,
            "prompt_speech_feat": feat,
            "prompt_speech_feat_len": feat_len,
            "llm_embedding": embedding,
            "flow_embedding": embedding,
        }

    def frontend_cross_lingual(self, tts_text, prompt_wav, resample_rate, zero_shot_spk_id):
        model_input = self.frontend_zero_shot(tts_text, "", prompt_wav, resample_rate, zero_shot_spk_id)
        for name in ("prompt_text", "llm_prompt_speech_token"):
            del model_input[name], model_input[name + "_len"]
        return model_input

    def frontend_instruct2(self, tts_text, instruct_text, prompt_wav, resample_rate, zero_shot_spk_id):
        # With a voice that is cached the instruction goes nowhere: the stored transcript stays.
        model_input = self.frontend_zero_shot(
            tts_text, instruct_text, prompt_wav, resample_rate, zero_shot_spk_id
        )
        del model_input["llm_prompt_speech_token"], model_input["llm_prompt_speech_token_len"]
        return model_input


logging.info("the double logs as the real one does")
