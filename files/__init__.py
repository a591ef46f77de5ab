"""What is attached to messages, in the words that the model is told: text, PDFs, pictures, sound. Begin at reading.py.

Nothing of a file is kept here, and nothing in it is ever run or obeyed.
"""
