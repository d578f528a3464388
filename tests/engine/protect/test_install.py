"""The installed package: `from bankflip import protect` beside a foreign `engine` and `app`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
import engine, app
assert engine.WHOSE == app.WHOSE == "somebody else's"
from bankflip import protect
import mlx.core as mx
from mlx_lm.models import llama
model = llama.Model(llama.ModelArgs(model_type="llama", hidden_size=16, num_hidden_layers=2,
    intermediate_size=16, num_attention_heads=2, rms_norm_eps=1e-5, vocab_size=16))
model = protect.TransactionalModel(model)
cache = protect.make_prompt_cache(model)
model(mx.array([[1, 2, 3]]), cache=cache)
import sys
mine = [n for n in sys.modules if n.split(".")[0] in ("engine", "app", "metal", "PySide6")]
print(model.position(cache), sorted(mine), protect.__file__)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build reads, so that nothing is written into the checkout."""
    copy = tmp_path_factory.mktemp("source") / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for name in ("app", "engine", "metal", "resources"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    return copy


def pip_install(source: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--disable-pip-version-check", "--root-user-action=ignore", *options]
    done = subprocess.run([*command], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FORGET = """import sys, site
for name in [n for n in sys.modules if n.startswith("__editable___bankflip")]:
    finder = sys.modules.pop(name)._EditableFinder
    sys.meta_path[:] = [f for f in sys.meta_path if f is not finder]
pass"""
"""An editable install of the checkout under test must not answer for the one in `site`."""


def run_beside_strangers(site: Path, folder: Path) -> list[str]:
    for name in ("engine", "app"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text('WHOSE = "somebody else\'s"\n')
    (folder / "script.py").write_text(SCRIPT)
    # the script's own folder comes first on the path, as in any project
    # first on the path while its .pth files are read: both installs name their finder alike
    start = f"{FORGET}; sys.path.insert(0, {str(site)!r}); site.addsitedir({str(site)!r})"
    start += f"; sys.path.remove({str(site)!r}); sys.path.append({str(site)!r})"
    start += f"; sys.path.insert(0, {str(folder)!r})"
    code = f"{start}; exec(open('script.py').read())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split(" ", 1)


@pytest.mark.parametrize("editable", [False, True])
def test_import_name_beside_foreign_packages(source: Path, tmp_path: Path, editable: bool) -> None:
    site = tmp_path / "site"
    project = tmp_path / "project"
    project.mkdir()
    pip_install(source, "--target", str(site), *(["-e"] if editable else []), ".")
    position, rest = run_beside_strangers(site, project)
    assert position == "3"
    assert rest.startswith("['app', 'engine'] ")
    expected = source / "engine" if editable else site / "bankflip"
    assert rest.split(" ")[-1] == str(expected / "protect" / "__init__.py")


def test_the_sources_import_nothing_else_of_this_project() -> None:
    for path in (ROOT / "engine" / "protect").rglob("*.py"):
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                assert words[1].split(".")[0] not in ("engine", "app", "metal", "PySide6"), path


def test_without_mlx_lm_the_import_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mlx_lm'] = None\n"
        "try:\n    import engine.protect\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "pip install 'bankflip[mlx-lm]'" in done.stdout
    assert done.stdout.count("\n") == 1
