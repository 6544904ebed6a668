from tts.models.attempt import Attempt
from tts.models.device import Device, DeviceKind, DeviceSlot
from tts.models.fair_share import FairShareClass, FairShareQueue
from tts.models.job import SynthesisJob
from tts.models.model_share import ModelShare
from tts.models.operations import (
    DeviceCommand,
    DeviceCommandKind,
    DeviceCommandState,
    DeviceEvent,
    DeviceEventKind,
    PoisonText,
)
from tts.models.pronunciation import PronunciationVersion
from tts.models.rendition import Rendition
from tts.models.segment import Segment
from tts.models.telemetry import DeviceHour, DeviceSample, Resolution
from tts.models.voice import Voice, VoiceKind, VoiceVersion

__all__ = [
    "Attempt",
    "Device",
    "DeviceCommand",
    "DeviceCommandKind",
    "DeviceCommandState",
    "DeviceEvent",
    "DeviceEventKind",
    "DeviceHour",
    "DeviceKind",
    "DeviceSample",
    "DeviceSlot",
    "FairShareClass",
    "FairShareQueue",
    "ModelShare",
    "PoisonText",
    "PronunciationVersion",
    "Rendition",
    "Resolution",
    "Segment",
    "SynthesisJob",
    "Voice",
    "VoiceKind",
    "VoiceVersion",
]
