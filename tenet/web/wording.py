"""What pydantic and Starlette refuse, in our own words: what was expected, what came, what to do."""

from collections.abc import Mapping
from typing import Any

LONGEST = 60
"""Characters of a wrong value that are shown."""
DESCRIBED = "see /openapi.json"

# pydantic's type of an error → what was expected, with the names of its context
EXPECTED = {
    "missing": "a value",
    "extra_forbidden": "no such field",
    "string_type": "text",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "text like {pattern}",
    "string_unicode": "text in UTF-8",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal_error": "one of {expected}",
    "list_type": "a list",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "json_invalid": "JSON",
    "model_attributes_type": "a JSON object",
    "dict_type": "a JSON object",
}


def invalid(error: Mapping[str, Any]) -> str:
    """One error of pydantic as a line."""
    # The first word is where it was: body, query, path.
    where = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    kind, context = str(error["type"]), error.get("ctx") or {}
    expected = EXPECTED.get(kind)
    if expected is None:
        told = str(error["msg"]).removeprefix("Input should be ").removeprefix("Value error, ")
        # FastAPI's own word for a form's field that must be a file.
        expected = "a file" if "UploadFile" in told else told[:1].lower() + told[1:]
    else:
        expected = expected.format_map(_Known(context))
    came = "nothing" if kind == "missing" else _shown(error.get("input"))
    return f"{where}: expected {expected}, got {came}; {DESCRIBED}"


def refused(status: int, detail: str, method: str, path: str, allowed: str = "") -> str:
    """A refusal of Starlette as a line; ours are left as they are."""
    if status == 404 and detail == "Not Found":
        return f"expected a path of this service, got {_shown(path)}; {DESCRIBED}"
    if status == 405 and detail == "Method Not Allowed":
        return f"expected {allowed or 'another method'} for this path, got {method[:20]}; {DESCRIBED}"
    if status == 400 and not detail.startswith("expected"):
        return f"expected a request that can be parsed, got one that cannot ({detail}); {DESCRIBED}"
    return detail


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "another"


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if not isinstance(value, (str, int, float, bool, type(None))):
        return {"list": "a list", "dict": "an object"}.get(type(value).__name__, "something else")
    text = repr(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
