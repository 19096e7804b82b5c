"""Every error that a user can cause, drawn as a tree.

    TenetError
    ├── ConfigError           a setting, or two settings together, that make no sense
    ├── InputError            an array, tensor or argument of the wrong shape, type or value
    ├── DataError             a file or folder of pictures or annotations that cannot be used
    ├── WeightsError          model weights that are missing, changed or of another model
    ├── TrainingError         a run that cannot go on: a loss that is not finite, nothing to resume from
    └── MissingExtraError     a feature whose optional packages are not installed

A message has three parts in one line: what was expected, what came, what to do.
`ConfigError` and `InputError` are also `ValueError`, `MissingExtraError` is also `ImportError`, so
that code which knows nothing of TENET can catch them.
"""


class TenetError(Exception):
    """The root: `except TenetError` catches whatever a user's input can cause."""


class ConfigError(TenetError, ValueError):
    """A setting, or two settings together, that make no sense."""


class InputError(TenetError, ValueError):
    """An array, tensor or argument of the wrong shape, type or value."""


class DataError(TenetError):
    """A file or folder of pictures or annotations that cannot be used."""


class WeightsError(TenetError):
    """Model weights that are missing, changed or of another model."""


class TrainingError(TenetError):
    """A run that cannot go on: a loss that is not finite, nothing to resume from."""


class MissingExtraError(TenetError, ImportError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs optional packages; install them with: pip install 'tenet-fsod[{extra}]'"
        )
