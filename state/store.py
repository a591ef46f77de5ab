"""What outlives the process: documents in a folder or in Redis, sealed or not, and the sessions kept among them.

The one part of `state` that reads and writes; Redis is in `state.redis_store`, for those who have one.
"""

from state.folder import FolderStore
from state.sealing import Seal, check_seal, read_keys
from state.sessions import CONVERSATIONS_PATH, SessionManager
from state.stored import Store, Stored, StoreError, WrongKeyError

__all__ = [
    "CONVERSATIONS_PATH",
    "FolderStore",
    "Seal",
    "SessionManager",
    "Store",
    "StoreError",
    "Stored",
    "WrongKeyError",
    "check_seal",
    "read_keys",
]
