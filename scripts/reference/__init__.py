"""The pages of the reference that are written from the code, one module for each kind; `write_reference.py` writes them."""
