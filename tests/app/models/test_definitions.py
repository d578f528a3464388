"""Every stage and owner of the tiny model has its sentence."""

from __future__ import annotations

from app.models import definitions
from engine.commands import OpenModel
from engine.driver import Driver
from engine.events import SessionOpened
from engine.progress import CancelToken


def test_every_stage_and_owner_of_the_tiny_model_is_defined():
    heard = []
    driver = Driver(lambda _, body: heard.append(body), CancelToken())
    driver.handle(OpenModel("qwen4exp-tiny"))
    driver.close()
    opened = next(body for body in heard if isinstance(body, SessionOpened))
    assert [name for name, _ in opened.stages if not definitions.of_stage(name)] == []
    assert [name for name, _ in opened.owners if name not in definitions.OWNERS] == []


def test_an_unknown_stage_has_no_sentence():
    assert definitions.of_stage("layer.0.new") == ""
    assert definitions.of_owner("new") == ""


def test_layers_of_mlx_lm_are_stages_and_owners():
    assert "layer" in definitions.of_stage("layer.11")
    assert definitions.of_owner("layer.3.1") == definitions.of_owner("layer.0") != ""
