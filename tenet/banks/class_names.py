"""What a class may be called: a name becomes a line of a table, a word of a JSON file and a folder."""

from tenet.errors import InputError

LONGEST = 100


def check_name(name: object) -> str:
    """The name itself, or an InputError that says what is wrong with it."""
    if not isinstance(name, str):
        raise InputError(f"class name: expected text, got {type(name).__name__}")
    if wrong := _fault(name):
        shown = repr(name if len(name) <= LONGEST else name[:20] + "…")
        raise InputError(
            f"class name: expected 1 to {LONGEST} printable characters without slashes, "
            f"got {shown} ({wrong}); choose another"
        )
    return name


def _fault(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if len(name) > LONGEST:
        return f"it has {len(name)}"
    if name != name.strip():
        return "it begins or ends with a space"
    if "/" in name or "\\" in name:
        return "it has a slash"
    if not name.isprintable():
        return "it has a control character"
    return "it is a folder's own name" if name in (".", "..") else ""
