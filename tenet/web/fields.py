"""Fields that an address does not have are refused: a misspelt `treshold` would otherwise count for nothing,
and nobody would learn of it. Bodies of JSON are as strict (`tenet/web/schemas.py`).
"""

from collections.abc import Collection
from difflib import get_close_matches

from fastapi import Depends
from starlette.requests import Request

from tenet.errors import InputError

FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
SHOWN = 40
"""Characters of an unknown name that are shown."""


async def _refuse_unknown(request: Request) -> None:
    asked = request.scope["route"].dependant
    in_address = {field.alias for field in asked.query_params}
    in_body = {field.alias for field in asked.body_params}
    for name in request.query_params:
        if name not in in_address:
            known = f"{name} belongs into the body" if name in in_body else _advice(name, in_address)
            raise InputError(f"{name[:SHOWN]!r}: expected no such field in the address; {known}")
    if in_body and request.headers.get("content-type", "").lower().startswith(FORMS):
        for name in await request.form():  # read already, and kept by the request
            if name not in in_body:
                raise InputError(f"{name[:SHOWN]!r}: expected no such field; {_advice(name, in_body)}")


def _advice(name: str, known: Collection[str]) -> str:
    likely = get_close_matches(name, known, n=1)
    return f"did you mean {likely[0]}?" if likely else f"there is {', '.join(sorted(known)) or 'none'}"


ONLY_KNOWN_FIELDS = Depends(_refuse_unknown)
