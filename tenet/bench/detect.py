"""Detection against the bare encoder, in one run: one class, each further class, registering, memory.

The pictures are noise and the weights those of the configuration's start: time does not depend on them.
At 320 px EfficientNet-Lite0 with shared region features; ResNet-50 at 600 × 800, with the narrow heads of
`tenet_resnet50` and with the paper's own.

examples:
  tenet bench detect
  tenet bench detect --rounds 15 --skip-resnet
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenet.bench.arguments import positive

if TYPE_CHECKING:
    import numpy as np

    from tenet.runtime.torch_runtime import TorchRuntime
    from tenet.structures import ClassFeatures

FURTHER = 9
"""Classes beside the first, over which the cost of a further class is taken."""
# what: the most that it may cost, in passes of the bare encoder
AIMS = {"one class": 2.0, "further class": 0.15, "register 5 crops": 8.0}
RESNET_AIM, MEMORY_AIM = 1.6, 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=positive, default=9, help="interleaved rounds (default: %(default)s)"
    )
    parser.add_argument("--preset", default="tenet_lite0", help="configuration (default: %(default)s)")
    parser.add_argument("--skip-resnet", action="store_true", help="leave out ResNet-50 at 600 × 800")


def run(args: argparse.Namespace) -> int:
    import torch

    from tenet.bench.measure import machine, resident_memory
    from tenet.models.build import build_detector
    from tenet.presets import preset
    from tenet.runtime.torch_runtime import TorchRuntime

    print(machine(), "\n")
    torch.manual_seed(0)
    runtime = TorchRuntime(build_detector(preset(args.preset)))
    _lite(runtime, args.rounds)
    memory = resident_memory()
    if memory is not None:
        print(f"resident memory {memory:,.0f} MB: {_verdict(memory, MEMORY_AIM)}\n")
    if not args.skip_resnet:
        _resnet(max(3, args.rounds // 3))
    return 0


def _lite(runtime: "TorchRuntime", rounds: int) -> None:
    import numpy as np

    from tenet.bench.measure import interleaved, ms, table
    from tenet.structures import Shot

    picture, crops = _noise(240, 320), [_noise(224, 224, seed) for seed in range(5)]
    box = np.array([20, 20, 204, 204], np.float32)
    shots = [Shot(crop, box) for crop in crops]
    classes = [runtime.encode_shots(shots) for _ in range(1 + FURTHER)]
    times = interleaved(
        {
            "bare encoder": _bare(runtime, picture),
            "one class": _detect(runtime, picture, classes[:1]),
            f"{1 + FURTHER} classes": _detect(runtime, picture, classes),
            "register 5 crops": lambda: runtime.encode_shots(shots),
        },
        rounds,
    )
    encoder = times["bare encoder"]
    further = (times[f"{1 + FURTHER} classes"] - times["one class"]) / FURTHER
    shown = {
        "one class": times["one class"],
        "further class": further,
        "register 5 crops": times["register 5 crops"],
    }
    rows = [["bare encoder", ms(encoder), "1", ""]]
    rows += [
        [what, ms(t), f"{t / encoder:.2f}", _verdict(t / encoder, AIMS[what])] for what, t in shown.items()
    ]
    print(f"{runtime.detector.config.encoder.name}, 320 x 240, 5 shots a class; medians of {rounds} rounds")
    print(table(["what", "time", "of the encoder", "aim"], rows))


def _resnet(rounds: int) -> None:
    """The paper's encoder with the configuration for it, and with the paper's own heads at full width."""
    from dataclasses import replace

    import numpy as np

    from tenet.bench.measure import interleaved, ms, table
    from tenet.models.build import build_detector
    from tenet.presets import preset
    from tenet.runtime.torch_runtime import TorchRuntime
    from tenet.structures import Shot

    paper = preset("paper_voc")
    configs = {
        "tenet_resnet50": preset("tenet_resnet50"),
        "paper_voc, shared regions": replace(
            paper, encoder=replace(paper.encoder, regions="shared"), head=replace(paper.head, regions="union")
        ),
    }
    picture, shot = _noise(600, 800), Shot(_noise(320, 320, 1), np.array([20, 20, 300, 300], np.float32))
    calls: dict[str, Callable[[], object]] = {}
    for name, config in configs.items():
        runtime = TorchRuntime(build_detector(config))
        calls.setdefault("bare encoder", _bare(runtime, picture))
        calls[name] = _detect(runtime, picture, [runtime.encode_shots([shot])])
    times = interleaved(calls, rounds)
    encoder = times.pop("bare encoder")
    rows = [["bare encoder", ms(encoder), "1", ""]]
    for name, t in times.items():
        aim = _verdict(t / encoder, RESNET_AIM) if name == "tenet_resnet50" else ""
        rows.append([name, ms(t), f"{t / encoder:.2f}", aim])
    print(f"resnet50, 800 x 600, one class of one shot; medians of {rounds} rounds")
    print(table(["what", "time", "of the encoder", "aim"], rows))


def _bare(runtime: "TorchRuntime", picture: "np.ndarray") -> Callable[[], object]:
    """The backbone alone, from pixels to its last map."""
    import torch

    pixels = torch.from_numpy(picture).permute(2, 0, 1).float().unsqueeze(0)

    def call() -> object:
        with torch.inference_mode():
            return runtime.detector.encoder.stages(pixels)

    return call


def _detect(
    runtime: "TorchRuntime", picture: "np.ndarray", classes: "list[ClassFeatures]"
) -> Callable[[], object]:
    return lambda: runtime.match(runtime.encode_images([picture]), classes)


def _noise(height: int, width: int, seed: int = 0) -> "np.ndarray":
    import numpy as np

    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def _verdict(value: float, aim: float) -> str:
    return f"aim {aim:g} {'met' if value <= aim else 'missed'}"
