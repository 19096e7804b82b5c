"""The server that `tenet bench serve` measures, in a process of its own: `serve_child STORE PRESET|- BATCH`.

Without a preset it is the model that comes with tenet. With one, weights are those of its start: time does
not depend on them.
"""

import sys

from tenet.predictor import Tenet


def _model(preset_name: str) -> Tenet:
    if preset_name == "-":
        return Tenet.load()
    from tenet.models.build import build_detector
    from tenet.presets import preset
    from tenet.runtime.torch_runtime import TorchRuntime

    return Tenet(TorchRuntime(build_detector(preset(preset_name))))


def main() -> None:
    """Serve on a free port of this machine, and print the address."""
    from tenet.web.limits import Limits
    from tenet.web.server import serve

    store, preset_name, batch = sys.argv[1:4]

    def began(address: str, _store: str) -> None:
        print(address, flush=True)

    serve(_model(preset_name), "127.0.0.1", 0, store, None, began, Limits(batch=int(batch)))


if __name__ == "__main__":
    main()
