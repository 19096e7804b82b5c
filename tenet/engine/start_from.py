"""A start from what another detector has learned: every part of the same name and shape is taken over.

Heads that were trained on one encoder help the next one, whose adapters are new, and a run can be made
longer with a schedule of its own. A detector that has seen a split's novel classes is refused there.
"""

from tenet.data.splits import VOC_TO_COCO
from tenet.engine.checkpoint import load
from tenet.engine.optim import BACKBONE
from tenet.errors import ConfigError
from tenet.models.detector import TENET
from tenet.runtime.loading import model_file


def start_from(detector: TENET, name: str, novel: list[str], parts: tuple[str, ...] = ("",)) -> int:
    """Take over what fits from a shipped model, a run or a checkpoint; returns how many tensors did.

    novel  classes that must not have been trained on
    parts  what the names of the tensors begin with; all by default
    """
    checkpoint = load(model_file(name))
    split = checkpoint.split
    seen = {VOC_TO_COCO.get(each, each) for each in (*split.get("base", []), *split.get("learned", []))}
    leaks = [each for each in novel if VOC_TO_COCO.get(each, each) in seen]
    if leaks or (novel and not seen):
        told = ", ".join(leaks) or "classes that it does not tell"
        raise ConfigError(
            f"train.start: expected a model that has not seen the split's novel classes, but {name} was "
            f"trained on {told}; leave train.start empty"
        )
    own = detector.state_dict()
    given = {key.removeprefix("model/"): value for key, value in checkpoint.tensors.items()}
    fitting = {
        key: value
        for key, value in given.items()
        if key.startswith(parts) and key in own and own[key].shape == value.shape
    }
    frozen = detector.config.encoder.frozen and detector.config.encoder.weights == "imagenet"
    if frozen and any(key.startswith(BACKBONE) for key in fitting):
        raise ConfigError(
            f"train.start: expected a model on the encoder's own weights, but the encoder of {name} learned; "
            'set model.encoder.weights = "none" to take it over'
        )
    if not fitting:
        raise ConfigError(f"train.start: expected a model with parts of this one's shapes, got {name}")
    detector.load_state_dict(fitting, strict=False)
    return len(fitting)
