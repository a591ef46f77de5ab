"""The errors of the playground's API, with Discord's status, code and body (Discord: opcodes and status codes)."""

from functools import partial
from typing import Any


class ApiError(Exception):
    """A refused request. `code` is Discord's JSON error code, `errors` its tree of form errors (code 50035 only)."""

    def __init__(self, status: int, code: int, message: str, errors: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    def body(self) -> dict[str, Any]:
        """The JSON body as Discord sends it."""
        wire: dict[str, Any] = {"message": self.message, "code": self.code}
        return wire | {"errors": self.errors} if self.errors else wire


# Called where the error is raised, as each has to be a new one.
unauthorized = partial(ApiError, 401, 0, "401: Unauthorized")
unknown_channel = partial(ApiError, 404, 10003, "Unknown Channel")
unknown_member = partial(ApiError, 404, 10007, "Unknown Member")
unknown_message = partial(ApiError, 404, 10008, "Unknown Message")
unknown_role = partial(ApiError, 404, 10011, "Unknown Role")
unknown_user = partial(ApiError, 404, 10013, "Unknown User")
unknown_emoji = partial(ApiError, 400, 10014, "Unknown Emoji")
unknown_webhook = partial(ApiError, 404, 10015, "Unknown Webhook")
unknown_interaction = partial(ApiError, 404, 10062, "Unknown interaction")
unknown_command = partial(ApiError, 404, 10063, "Unknown application command")
too_large = partial(ApiError, 413, 40005, "Request entity too large")
tag_required = partial(ApiError, 400, 40067, "A tag is required to create a forum post in this channel")
too_many_follow_ups = partial(ApiError, 400, 40094, "Reached the maximum number of follow up messages")
already_acknowledged = partial(ApiError, 400, 40060, "Interaction has already been acknowledged.")
missing_access = partial(ApiError, 403, 50001, "Missing Access")
not_in_direct_messages = partial(ApiError, 400, 50003, "Cannot execute action on a DM channel")
not_your_message = partial(ApiError, 403, 50005, "Cannot edit a message authored by another user")
empty_message = partial(ApiError, 400, 50006, "Cannot send an empty message")
blocked = partial(ApiError, 403, 50007, "Cannot send messages to this user")
no_mutual_guild = partial(ApiError, 403, 50278, "Cannot send messages to this user due to having no mutual guilds")
not_a_text_channel = partial(ApiError, 400, 50008, "Cannot send messages in a non-text channel")
missing_permissions = partial(ApiError, 403, 50013, "Missing Permissions")
system_message = partial(ApiError, 403, 50021, "Cannot execute action on a system message")
wrong_channel_type = partial(ApiError, 400, 50024, "Cannot execute action on this channel type")
invalid_webhook_token = partial(ApiError, 401, 50027, "Invalid Webhook Token")
invalid_role = partial(ApiError, 400, 50028, "Invalid Role")
wrong_message_type = partial(ApiError, 400, 50068, "Invalid message type")
thread_archived = partial(ApiError, 400, 50083, "Thread is archived")
invalid_json = partial(ApiError, 400, 50109, "The request body contains invalid JSON.")
reply_needs_history = partial(ApiError, 400, 160002, "You cannot reply without permission to read message history")
thread_exists = partial(ApiError, 400, 160004, "A thread has already been created for this message")
thread_locked = partial(ApiError, 400, 160005, "Thread is locked")
too_many_threads = partial(ApiError, 400, 160006, "Maximum number of active threads reached")
poll_stands = partial(ApiError, 400, 520003, "Cannot edit a poll message")


def too_many_pins(most: int) -> ApiError:
    return ApiError(400, 30003, f"Maximum number of pinned messages reached ({most})")


def too_many_files(most: int) -> ApiError:
    return ApiError(400, 30015, f"Maximum number of attachments in a message reached ({most})")


class Form:
    """Collects the errors of a request body by field, and raises them together as code 50035."""

    def __init__(self) -> None:
        self._errors: dict[str, Any] = {}

    def wrong(self, path: str, code: str, message: str) -> None:
        """Note an error at `path`, keys and indices joined by dots, as in "components.0.label"."""
        node = self._errors
        for key in path.split("."):
            node = node.setdefault(key, {})
        node.setdefault("_errors", []).append({"code": code, "message": message})

    def between(self, path: str, value: Any, least: int, most: int, kind: type[str] | type[list[Any]] = str) -> bool:
        """Note a value unless it is a `kind` of `least` to `most` characters or entries. Returns whether it is."""
        if isinstance(value, kind) and least <= len(value) <= most:
            return True
        self.wrong(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
        return False

    def at_most(self, path: str, value: Any, most: int, kind: type[str] | type[list[Any]] = str) -> bool:
        """The same for a value that may be empty, or left out."""
        if value is None or (isinstance(value, kind) and len(value) <= most):
            return True
        self.wrong(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
        return False

    def error(self) -> ApiError:
        return ApiError(400, 50035, "Invalid Form Body", self._errors)

    def check(self) -> None:
        if self._errors:
            raise self.error()


def invalid_form(path: str, code: str, message: str) -> ApiError:
    """An ApiError 50035 with a single form error."""
    form = Form()
    form.wrong(path, code, message)
    return form.error()
