"""What the service refuses, each with its HTTP status.

TenetError
└── ServiceError          500  anything below, as an answer with a status, a code and one line of text
    ├── NotFoundError     404  no such class, shot or job
    ├── ChangedError      409  somebody else changed the class meanwhile
    ├── TooLargeError     413  more bytes, pixels, files or classes than the service takes
    ├── BusyError         503  the queue is full; with Retry-After
    └── TimeOutError      504  it took longer than a request may
"""

from tenet.errors import DataError, InputError, MissingExtraError, TenetError, WeightsError


class ServiceError(TenetError):
    """An answer with a status."""

    status = 500
    code = "failed"


class NotFoundError(ServiceError):
    """No such class, shot or job."""

    status, code = 404, "not_found"


class ChangedError(ServiceError):
    """Somebody else changed the class meanwhile."""

    status, code = 409, "changed"


class TooLargeError(ServiceError):
    """More bytes, pixels, files or classes than the service takes."""

    status, code = 413, "too_large"


class BusyError(ServiceError):
    """The queue is full."""

    status, code = 503, "busy"

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimeOutError(ServiceError):
    """It took longer than a request may."""

    status, code = 504, "time_out"


def status_and_code(error: TenetError) -> tuple[int, str]:
    """How an error is answered over HTTP."""
    if isinstance(error, ServiceError):
        return error.status, error.code
    if isinstance(error, (InputError, DataError)):
        return 422, "bad_input"
    if isinstance(error, WeightsError):
        return 409, "other_model"
    return (501, "not_installed") if isinstance(error, MissingExtraError) else (500, "failed")
