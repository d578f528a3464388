"""KV-cache events of vLLM and SGLang: recorded streams, and the inventory that they describe.

Source: vLLM up to 0.31.0 and SGLang up to 0.5.21, their event classes and publisher threads.
"""
