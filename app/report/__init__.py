"""Reports that a person hands on: facts, pictures, and the files made from them.

`facts` says what is so, `pictures` grabs the panels, `html`, `pdf` and `write` make the files.
Only `pictures` and `pdf` import Qt.
"""
