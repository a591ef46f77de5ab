"""What outlives the process: sessions as JSON files, and the rows that the bot keeps in a database or in Redis.

The one part of `state` that reads and writes; Redis is in `state.redis_store`, for those who have one.
"""

from state.sealing import Seal, read_keys
from state.sessions import CONVERSATIONS_PATH, SessionManager
from state.sqlite_store import SQLiteStore
from state.stored import Key, Row, Store, StoreError, WrongKeyError

__all__ = [
    "CONVERSATIONS_PATH",
    "Key",
    "Row",
    "SQLiteStore",
    "Seal",
    "SessionManager",
    "Store",
    "StoreError",
    "WrongKeyError",
    "read_keys",
]
