"""A client of `tenet serve`, with the standard library and numpy alone.

    client = Client("http://127.0.0.1:8000")
    client.register("pinecone", [("yard.jpg", (20, 31, 138, 171))])
    found = client.detect("forest.jpg")
    found.boxes, found.names, found.scores

Boxes are xyxy in pixels of the picture that was sent. A busy service is asked again when it says.
"""

import json
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

from tenet.client_forms import (
    Box,
    Field,
    PictureFile,
    asked_fields,
    corners,
    file_of,
    look_fields,
    multipart,
    reason_fields,
    shot_list,
)
from tenet.errors import DataError, InputError, TenetError
from tenet.structures import Detections


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
        return self.state == "done"


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

    def get(self, name: str) -> ClassState:
        """One class."""
        return _class(self._json("GET", _class_path(name)))

    def rename(self, name: str, new: str) -> ClassState:
        """Call a class otherwise."""
        return _class(json.loads(self._send_json("PATCH", _class_path(name), {"name": new})))

    def thumbnail(self, name: str, shot: int) -> bytes:
        """The crop that the network saw of a shot, as JPEG."""
        return self._send("GET", f"{_class_path(name)}/shots/{shot}/thumbnail")

    def scene(self, name: str, shot: int) -> bytes:
        """The picture that a shot came with, scaled down, as JPEG."""
        return self._send("GET", f"{_class_path(name)}/shots/{shot}/scene")

    def register(
        self,
        name: str,
        shots: PictureFile | tuple[PictureFile, Box] | Sequence[PictureFile | tuple[PictureFile, Box]],
        replace: bool = False,
    ) -> ClassState:
        """Show the detector a class: crops, or (picture, (x1, y1, x2, y2)) in pixels of that picture."""
        form: list[Field] = [("replace", None, str(replace).lower().encode())]
        for shot in shot_list(shots):
            picture, box = shot if isinstance(shot, tuple) else (shot, None)
            form.append(("pictures", *file_of(picture)))
            form.append(("boxes", None, b"whole" if box is None else corners(box)))
        return _class(self._json("POST", f"{_class_path(name)}/shots", form))

    def remove(self, name: str, shot: int | None = None) -> None:
        """Forget a class, or one of its shots by its id."""
        path = _class_path(name)
        self._send("DELETE", path if shot is None else f"{path}/shots/{shot}")

    # ---- detecting

    def detect(
        self,
        picture: PictureFile,
        threshold: float | None = None,
        classes: Iterable[str] | None = None,
        size: str | int = "auto",
        tiles: bool = True,
        limit: int = 300,
    ) -> Detections:
        """What is in a picture, best first; boxes xyxy in its pixels. Options are those of `Tenet.detect`."""
        form = [
            ("pictures", *file_of(picture)),
            *asked_fields(threshold, classes),
            *look_fields(size, tiles, limit),
        ]
        answer = self._json("POST", "/v1/detect", form)
        return detections_of(answer["pictures"][0], answer["classes"])

    def explain(
        self,
        picture: PictureFile,
        top: int = 1,
        threshold: float | None = None,
        classes: Iterable[str] | None = None,
        box: Box | None = None,
    ) -> dict[str, Any]:
        """Why the best things were found, or why a box (xyxy in pixels of the picture) is one of a class or
        not: maps, pairs and cosines as plain values, as docs/service.md tells."""
        found: dict[str, Any] = self._json(
            "POST", "/v1/explain", reason_fields(picture, top, threshold, classes, box)
        )
        return found

    def explain_figure(
        self,
        picture: PictureFile,
        top: int = 3,
        threshold: float | None = None,
        classes: Iterable[str] | None = None,
        box: Box | None = None,
    ) -> bytes:
        """The same as one picture, a PNG; `box` is xyxy in pixels of the picture."""
        return self._send("POST", "/v1/explain/figure", reason_fields(picture, top, threshold, classes, box))

    def export(
        self,
        pictures: Sequence[Mapping[str, Any]],
        classes: Sequence[str],
        layout: str = "coco",
        threshold: float = 0.0,
    ) -> bytes:
        """Pictures of an answer, such as those of `job_results`, as a file: coco, yolo, voc or csv."""
        told = {
            "format": layout,
            "classes": list(classes),
            "pictures": list(pictures),
            "threshold": threshold,
        }
        return self._send_json("POST", "/v1/export", told)

    # ---- jobs

    def start_job(
        self,
        pictures: PictureFile | Sequence[PictureFile],
        threshold: float | None = None,
        classes: Iterable[str] | None = None,
        size: str | int = "auto",
        tiles: bool = True,
        limit: int = 300,
    ) -> JobState:
        """Look at all pictures of a zip archive, or of a list, in the background."""
        alone = isinstance(pictures, (str, bytes, Path))
        files: list[Field] = (
            [("archive", *file_of(pictures))]  # type: ignore[arg-type]
            if alone
            else [("pictures", *file_of(one)) for one in pictures]  # type: ignore[union-attr,arg-type]
        )
        form = [*files, *asked_fields(threshold, classes), *look_fields(size, tiles, limit)]
        return _job(self._json("POST", "/v1/jobs", form))

    def jobs(self) -> list[JobState]:
        """The newest jobs."""
        return [_job(one) for one in self._json("GET", "/v1/jobs")["jobs"]]

    def forget_job(self, key: str) -> None:
        """Forget a job with its results; one that is not done is given up."""
        self._send("DELETE", _job_path(key))

    def job(self, key: str) -> JobState:
        """How far a job is."""
        return _job(self._json("GET", _job_path(key)))

    def job_results(self, key: str) -> dict[str, list[dict[str, Any]]]:
        """What a job found so far: `pictures`, which `detections_of` reads, and those that `failed`."""
        found: dict[str, list[dict[str, Any]]] = {"pictures": [], "failed": []}
        start = 0
        while True:
            part = self._json("GET", f"{_job_path(key)}/results?limit=1000&start={start}")
            for name in found:
                found[name] += part[name]
                start += len(part[name])
            if (not part["pictures"] and not part["failed"]) or start >= part["total"]:
                return found

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

    def export_job(self, key: str, layout: str = "coco", threshold: float | None = None) -> bytes:
        """A job's results as a file: coco, yolo, voc or csv; all of them, or from a threshold on that is not
        below the job's own."""
        query = urlencode({"format": layout} | ({} if threshold is None else {"threshold": threshold}))
        return self._send("GET", f"{_job_path(key)}/export?{query}")

    # ---- the bank

    def save_bank(self, classes: Iterable[str] | None = None) -> bytes:
        """These classes, or all of them, as a bank file for `ClassBank.load`."""
        names = [classes] if isinstance(classes, str) else list(classes or ())
        query = "?" + urlencode([("classes", name) for name in names]) if names else ""
        return self._send("GET", f"/v1/bank{query}")

    def load_bank(self, bank: PictureFile, rebuild: bool = False) -> list[ClassState]:
        """Give the service the classes of a bank file."""
        form: list[Field] = [("bank", *file_of(bank)), ("rebuild", None, str(rebuild).lower().encode())]
        return [_class(one) for one in self._json("POST", "/v1/bank", form)["classes"]]

    # ---- for supervisors

    def health(self) -> dict[str, Any]:
        """Whether the service is alive; an error if it is not."""
        found: dict[str, Any] = self._json("GET", "/healthz")
        return found

    def ready(self) -> dict[str, Any]:
        """Whether it can answer now; it is asked until it can, as long as the client's patience lasts."""
        found: dict[str, Any] = self._json("GET", "/readyz")
        return found

    def metrics(self) -> str:
        """Its counters in Prometheus' text format."""
        return self._send("GET", "/metrics").decode()

    # ---- within

    def _json(self, method: str, path: str, form: Sequence[Field] | None = None) -> Any:
        return json.loads(self._send(method, path, form))

    def _send(self, method: str, path: str, form: Sequence[Field] | None = None) -> bytes:
        return self._ask(method, path, *((None, None) if form is None else multipart(form)))

    def _send_json(self, method: str, path: str, told: Any) -> bytes:
        return self._ask(method, path, "application/json", json.dumps(told).encode())

    def _ask(self, method: str, path: str, kind: str | None, body: bytes | None) -> bytes:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        if kind is not None:
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


def _class_path(name: str) -> str:
    return f"/v1/classes/{quote(name, safe='')}"


def _job_path(key: str) -> str:
    return f"/v1/jobs/{quote(key, safe='')}"


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
