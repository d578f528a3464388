"""Data that ships with Bankflip: models, scenarios, themes, icons, samples, schemas."""
