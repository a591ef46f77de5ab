"""Attached files as text or pictures for the model: text, PDFs, pictures, sound. Begin at reading.py.

No file is kept here, and nothing in one is ever run or obeyed.
"""
