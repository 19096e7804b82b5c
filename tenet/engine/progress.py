"""Seeing a run: a bar, `metrics.jsonl`, and TensorBoard where it is asked for."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from tenet.data.files import write_text
from tenet.engine.loop import Step
from tenet.errors import MissingExtraError


class Progress:
    """Steps as they come, for the first process; the others are silent.

    bar            on a terminal: parts of the loss, iterations per second, time left
    metrics.jsonl  a line every `log_every` steps: the step, mean loss and parts since the last line,
                   gradient norm, rate, iterations per second
    """

    def __init__(
        self, out: Path, total: int, start: int, log_every: int, *, tensorboard: bool = False
    ) -> None:
        self.path, self.log_every = out / "metrics.jsonl", log_every
        out.mkdir(parents=True, exist_ok=True)
        self._forget_from(start)
        self.bar = tqdm(total=total, initial=start, desc=out.name, disable=None, unit="it")
        self.writer = _writer(out / "tensorboard") if tensorboard else None
        self.pending: list[Step] = []
        self.since = time.perf_counter()
        self.last: dict[str, Any] = {}

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write()
        self.bar.close()
        if self.writer is not None:
            self.writer.close()

    def step(self, step: Step) -> None:
        """Show a step; every `log_every` steps write a line."""
        self.pending.append(step)
        self.bar.update()
        shown = {name: f"{value:.3f}" for name, value in step.parts.items()}
        self.bar.set_postfix(loss=f"{step.loss:.3f}", **shown, refresh=False)
        if (step.number + 1) % self.log_every == 0:
            self._write()

    def picture(self, step: int, pixels: Any) -> None:
        """A picture (H, W, 3) uint8 in TensorBoard."""
        if self.writer is not None:
            self.writer.add_image("episode", pixels, step, dataformats="HWC")

    def _write(self) -> None:
        if not self.pending:
            return
        now, count = time.perf_counter(), len(self.pending)
        line = asdict(self.pending[-1])
        line["step"] = line.pop("number") + 1
        line["loss"] = sum(step.loss for step in self.pending) / count
        line["parts"] = {
            name: sum(step.parts.get(name, 0.0) for step in self.pending) / count for name in line["parts"]
        }
        line["iterations_per_second"] = count / (now - self.since)
        self.pending, self.since, self.last = [], now, line
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        if self.writer is not None:
            for name, value in {
                **line["parts"],
                **{k: line[k] for k in ("loss", "gradient", "rate")},
            }.items():
                self.writer.add_scalar(name, value, line["step"])

    def _forget_from(self, start: int) -> None:
        """A resumed run goes on from `start` steps: lines of later ones were lost with their parameters."""
        if not self.path.is_file():
            return
        kept = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            try:
                if json.loads(text)["step"] <= start:
                    kept.append(text)
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut when the run was killed
        write_text(self.path, "".join(line + "\n" for line in kept))


def _writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("--tensorboard", "tensorboard") from error
    return SummaryWriter(str(folder))
