"""llama.cpp: session, sequence and slot files, raw state blobs, and debug logs.

Source: llama.cpp 0c1e57098, session version 10, sequence version 3; older bodies are tried too.
"""
