"""mlx-lm prompt caches, both layouts, every class.

Source: mlx-lm 0.32.2 (layout 2) and 0.28 to 0.31 (layout 1), `mlx_lm/models/cache.py`.
"""
