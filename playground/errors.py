"""The errors of the playground's API, with Discord's status, code and body (Discord: opcodes and status codes)."""

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


def unauthorized() -> ApiError:
    return ApiError(401, 0, "401: Unauthorized")


def unknown_channel() -> ApiError:
    return ApiError(404, 10003, "Unknown Channel")


def unknown_member() -> ApiError:
    return ApiError(404, 10007, "Unknown Member")


def unknown_message() -> ApiError:
    return ApiError(404, 10008, "Unknown Message")


def unknown_role() -> ApiError:
    return ApiError(404, 10011, "Unknown Role")


def unknown_user() -> ApiError:
    return ApiError(404, 10013, "Unknown User")


def unknown_emoji() -> ApiError:
    return ApiError(400, 10014, "Unknown Emoji")


def unknown_webhook() -> ApiError:
    return ApiError(404, 10015, "Unknown Webhook")


def unknown_interaction() -> ApiError:
    return ApiError(404, 10062, "Unknown interaction")


def unknown_command() -> ApiError:
    return ApiError(404, 10063, "Unknown application command")


def too_many_pins(most: int) -> ApiError:
    return ApiError(400, 30003, f"Maximum number of pinned messages reached ({most})")


def too_many_files(most: int) -> ApiError:
    return ApiError(400, 30015, f"Maximum number of attachments in a message reached ({most})")


def too_large() -> ApiError:
    return ApiError(413, 40005, "Request entity too large")


def tag_required() -> ApiError:
    return ApiError(400, 40067, "A tag is required to create a forum post in this channel")


def too_many_follow_ups() -> ApiError:
    return ApiError(400, 40094, "Reached the maximum number of follow up messages")


def already_acknowledged() -> ApiError:
    return ApiError(400, 40060, "Interaction has already been acknowledged.")


def missing_access() -> ApiError:
    return ApiError(403, 50001, "Missing Access")


def not_in_direct_messages() -> ApiError:
    return ApiError(400, 50003, "Cannot execute action on a DM channel")


def not_your_message() -> ApiError:
    return ApiError(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> ApiError:
    return ApiError(400, 50006, "Cannot send an empty message")


def blocked() -> ApiError:
    return ApiError(403, 50007, "Cannot send messages to this user")


def no_mutual_guild() -> ApiError:
    return ApiError(403, 50278, "Cannot send messages to this user due to having no mutual guilds")


def not_a_text_channel() -> ApiError:
    return ApiError(400, 50008, "Cannot send messages in a non-text channel")


def missing_permissions() -> ApiError:
    return ApiError(403, 50013, "Missing Permissions")


def system_message() -> ApiError:
    return ApiError(403, 50021, "Cannot execute action on a system message")


def wrong_channel_type() -> ApiError:
    return ApiError(400, 50024, "Cannot execute action on this channel type")


def invalid_webhook_token() -> ApiError:
    return ApiError(401, 50027, "Invalid Webhook Token")


def invalid_role() -> ApiError:
    return ApiError(400, 50028, "Invalid Role")


def wrong_message_type() -> ApiError:
    return ApiError(400, 50068, "Invalid message type")


def thread_archived() -> ApiError:
    return ApiError(400, 50083, "Thread is archived")


def invalid_json() -> ApiError:
    return ApiError(400, 50109, "The request body contains invalid JSON.")


def reply_needs_history() -> ApiError:
    return ApiError(400, 160002, "You cannot reply without permission to read message history")


def thread_exists() -> ApiError:
    return ApiError(400, 160004, "A thread has already been created for this message")


def thread_locked() -> ApiError:
    return ApiError(400, 160005, "Thread is locked")


def too_many_threads() -> ApiError:
    return ApiError(400, 160006, "Maximum number of active threads reached")


def poll_stands() -> ApiError:
    return ApiError(400, 520003, "Cannot edit a poll message")


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
