"""A client of `tenet serve`, with the standard library and numpy alone.

    client = Client("http://127.0.0.1:8000")
    client.register("pinecone", [("yard.jpg", (20, 31, 138, 171))])
    found = client.detect("forest.jpg")
    found.boxes, found.names, found.scores

Boxes are xyxy in pixels of the picture that was sent. A busy service is asked again when it says.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import numpy as np

from tenet.errors import DataError, InputError, TenetError
from tenet.structures import Detections

PictureFile = Path | str | bytes
"""A path, or the bytes of a picture file."""
Box = tuple[float, float, float, float]
Field = tuple[str, str | None, bytes]
"""Name, file name (None: a plain value) and content of a part of a form."""


class ServiceRefusedError(TenetError):
    """The service answered with an error; `status` is HTTP's, `code` the service's own word."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class ClassState:
    """A class of the service: ids of its shots in their order, and how well the detector sees them."""

    name: str
    shots: tuple[int, ...]
    verdict: str
    sentence: str
    notes: tuple[str, ...] = ()
    added: int = 0


@dataclass(frozen=True)
class JobState:
    """A job of the service and how far it is."""

    id: str
    state: str
    total: int
    done: int
    failed: int

    @property
    def finished(self) -> bool:
        return self.state in ("done", "failed")


class Client:
    """One service.

    token    where the service demands one
    timeout  seconds that one request may take
    patience seconds for which a busy service is asked again
    """

    def __init__(
        self, address: str, token: str | None = None, timeout: float = 130.0, patience: float = 60.0
    ) -> None:
        if urlsplit(address).scheme not in ("http", "https"):
            raise InputError(f"address: expected http://host:port, got {address!r}")
        self.address = address.rstrip("/")
        self._token, self._timeout, self._patience = token, timeout, patience

    # ---- classes

    def classes(self) -> list[ClassState]:
        """All classes."""
        found: list[ClassState] = []
        while True:
            page = self._json("GET", f"/v1/classes?limit=1000&start={len(found)}")
            found += [_class(one) for one in page["classes"]]
            if not page["classes"] or len(found) >= page["total"]:
                return found

    def register(
        self,
        name: str,
        shots: Sequence[PictureFile | tuple[PictureFile, Box]],
        replace: bool = False,
    ) -> ClassState:
        """Show the detector a class: crops, or (picture, (x1, y1, x2, y2)) in pixels of that picture."""
        form: list[Field] = [("replace", None, str(replace).lower().encode())]
        for shot in shots:
            picture, box = shot if isinstance(shot, tuple) else (shot, None)
            form.append(("pictures", *_file(picture)))
            corners = "whole" if box is None else ",".join(repr(float(value)) for value in box)
            form.append(("boxes", None, corners.encode()))
        return _class(self._json("POST", f"/v1/classes/{quote(name, safe='')}/shots", form))

    def remove(self, name: str, shot: int | None = None) -> None:
        """Forget a class, or one of its shots by its id."""
        path = f"/v1/classes/{quote(name, safe='')}"
        self._send("DELETE", path if shot is None else f"{path}/shots/{shot}")

    # ---- detecting

    def detect(
        self, picture: PictureFile, threshold: float | None = None, classes: Iterable[str] | None = None
    ) -> Detections:
        """What is in a picture, best first; boxes xyxy in its pixels."""
        form = [("pictures", *_file(picture)), *_fields(threshold, classes)]
        answer = self._json("POST", "/v1/detect", form)
        return detections_of(answer["pictures"][0], answer["classes"])

    def start_job(
        self, archive: PictureFile, threshold: float | None = None, classes: Iterable[str] | None = None
    ) -> JobState:
        """Look at all pictures of a zip archive in the background."""
        form = [("archive", *_file(archive)), *_fields(threshold, classes)]
        return _job(self._json("POST", "/v1/jobs", form))

    def jobs(self) -> list[JobState]:
        """The newest jobs."""
        return [_job(one) for one in self._json("GET", "/v1/jobs")["jobs"]]

    def forget_job(self, key: str) -> None:
        """Forget a job with its results; one that is not done is given up."""
        self._send("DELETE", f"/v1/jobs/{quote(key, safe='')}")

    def job(self, key: str) -> JobState:
        """How far a job is."""
        return _job(self._json("GET", f"/v1/jobs/{quote(key, safe='')}"))

    def wait(self, key: str, seconds: float = 3600.0) -> JobState:
        """The job when it is finished."""
        end = time.monotonic() + seconds
        while not (job := self.job(key)).finished:
            if time.monotonic() > end:
                raise DataError(
                    f"job {key}: expected it to be done in {seconds:g} s; {job.done} of {job.total}"
                )
            time.sleep(0.5)
        return job

    def export_job(self, key: str, layout: str = "coco", threshold: float = 0.0) -> bytes:
        """A job's results as a file: coco, yolo, voc or csv."""
        query = urlencode({"format": layout, "threshold": threshold})
        return self._send("GET", f"/v1/jobs/{quote(key, safe='')}/export?{query}")

    # ---- the bank

    def save_bank(self) -> bytes:
        """All classes as a bank file, for `ClassBank.load`."""
        return self._send("GET", "/v1/bank")

    def load_bank(self, bank: PictureFile, rebuild: bool = False) -> list[ClassState]:
        """Give the service the classes of a bank file."""
        form: list[Field] = [("bank", *_file(bank)), ("rebuild", None, str(rebuild).lower().encode())]
        return [_class(one) for one in self._json("POST", "/v1/bank", form)["classes"]]

    # ---- within

    def _json(self, method: str, path: str, form: Sequence[Field] | None = None) -> Any:
        return json.loads(self._send(method, path, form))

    def _send(self, method: str, path: str, form: Sequence[Field] | None = None) -> bytes:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        body = None
        if form is not None:
            kind, body = _multipart(form)
            headers["Content-Type"] = kind
        end = time.monotonic() + self._patience
        while True:
            request = Request(self.address + path, body, headers, method=method)
            try:
                with urlopen(request, timeout=self._timeout) as answer:
                    return bytes(answer.read())
            except HTTPError as error:
                with error:
                    pause = _pause(error.headers.get("Retry-After"))
                    if error.code != 503 or time.monotonic() + pause > end:
                        raise _refusal(error.code, error.read()) from None
                time.sleep(pause)
            except (URLError, OSError, HTTPException) as error:
                reason = getattr(error, "reason", None) or error
                raise DataError(
                    f"{self.address}: expected an answer, got none ({reason}); is `tenet serve` running?"
                ) from error


def detections_of(picture: Mapping[str, Any], classes: Sequence[str]) -> Detections:
    """A picture of the service's answer; boxes xyxy in its pixels."""
    rows = picture["detections"]
    return Detections(
        np.array([row["box"] for row in rows], np.float32).reshape(-1, 4),
        np.array([row["score"] for row in rows], np.float32),
        np.array([classes.index(row["class"]) for row in rows], np.int64),
        np.array([row["shot"] for row in rows], np.int64),
        tuple(classes),
    )


def _fields(threshold: float | None, classes: Iterable[str] | None) -> list[Field]:
    fields: list[Field] = [] if threshold is None else [("threshold", None, repr(float(threshold)).encode())]
    names = [classes] if isinstance(classes, str) else list(classes or ())
    return [*fields, *(("classes", None, name.encode()) for name in names)]


def _file(source: PictureFile) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return "picture", source
    try:
        return Path(source).name, Path(source).read_bytes()
    except OSError as error:
        raise DataError(
            f"{source}: expected a file to send, but it cannot be read ({error.strerror})"
        ) from error


def _multipart(form: Sequence[Field]) -> tuple[str, bytes]:
    """(content type, body) of a form with files."""
    mark = secrets.token_hex(16)
    parts = []
    for name, file_name, content in form:
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"'
        if file_name is not None:
            safe = file_name.replace("\\", "_").replace('"', "%22").replace("\r", " ").replace("\n", " ")
            head += f'; filename="{safe}"\r\nContent-Type: application/octet-stream'
        parts += [head.encode("utf-8", "replace"), b"\r\n\r\n", content, b"\r\n"]
    return f"multipart/form-data; boundary={mark}", b"".join([*parts, f"--{mark}--\r\n".encode()])


def _pause(told: str | None) -> float:
    return min(60.0, float(told)) if told and told.isdecimal() else 1.0


def _refusal(status: int, body: bytes) -> ServiceRefusedError:
    try:
        told = json.loads(body)["error"]
        return ServiceRefusedError(status, str(told["code"]), str(told["message"]))
    except (ValueError, KeyError, TypeError):
        return ServiceRefusedError(status, "unknown", f"the service answered {status}")


def _class(told: Mapping[str, Any]) -> ClassState:
    ids = tuple(int(shot["id"]) for shot in told["shots"])
    return ClassState(
        told["name"], ids, told["verdict"], told["sentence"], tuple(told["notes"]), int(told["added"])
    )


def _job(told: Mapping[str, Any]) -> JobState:
    return JobState(told["id"], told["state"], told["total"], told["done"], told["failed"])
