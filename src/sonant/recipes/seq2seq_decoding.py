"""How a bundle that writes token by token shall write: as it says, by the likeliest token, or with other settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sonant.base import config as configs
from sonant.base.conversion import convert
from sonant.base.document import Document
from sonant.base.errors import UsageError
from sonant.base.overrides import Given, with_overrides
from sonant.checkpoints.bundle import Bundle
from sonant.inference.writing import WritingConfig
from sonant.inference.writing_transcriber import saved_writing

_BEAM = "beam.width"  # as the option says it, which is that of searches over frames too


def asked_writing(bundle: Bundle, settings: Sequence[str | Given] = (), *, is_greedy: bool = False) -> WritingConfig:
    """The bundle's, with settings on top."""
    kept = saved_writing(bundle)
    if is_greedy and settings:
        raise UsageError("--greedy", "it searches nothing, and the other options do.", "Leave one out.")
    if is_greedy:
        return replace(kept, beam=1)
    given = [_ours(one) for one in settings]
    document = Document(configs.to_dict(kept), bundle.path("bundle.json"))
    return convert(WritingConfig, with_overrides(document, given)) if given else kept


def writing_in_words(config: WritingConfig) -> str:
    return "the likeliest token" if config.beam == 1 else f"a beam of {config.beam} texts"


def _ours(setting: str | Given) -> str | Given:
    if not isinstance(setting, Given):
        return setting
    if setting.key == _BEAM:
        return Given("beam", setting.value, setting.option)
    problem = "it is about scores of frames, which a model that writes token by token does not have."
    raise UsageError(setting.option, problem, "Leave it out; --beam can be set.")
