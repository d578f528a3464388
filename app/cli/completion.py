"""`bankflip completion SHELL`: a completion script, made from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

HELP = "print a completion script for a shell"

EPILOG = """examples:
  bash   source <(bankflip completion bash)
  zsh    bankflip completion zsh > "${fpath[1]}/_bankflip"
  fish   bankflip completion fish > ~/.config/fish/completions/bankflip.fish"""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand, as its parser knows it."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    """Choices of its positional arguments; none: files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell to complete for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(SHELLS[args.shell](read_commands()), end="")
    return 0


def read_commands() -> tuple[Command, ...]:
    """Every subcommand with its options, read from the real parsers."""
    from app.__main__ import build_parser

    parser = build_parser(None)
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    return tuple(_read(name, lines[name], sub) for name, sub in subparsers.choices.items())


def _read(name: str, line: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
            plain = action.nargs != 0
            options.append(Option(tuple(action.option_strings), plain, choices, text))
        else:
            words.extend(choices)
    return Command(name, line, tuple(options), tuple(words))


def bash(commands: tuple[Command, ...]) -> str:
    """A script for bash 4 and later."""
    cases = []
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        values = "".join(
            f'        {"|".join(o.names)}) words="{" ".join(o.choices)}" ;;\n'
            for o in command.options
            if o.choices
        )
        files = "|".join(
            n for o in command.options if o.takes_value and not o.choices for n in o.names
        )
        cases.append(
            f"    {command.name})\n"
            f'      words="{" ".join(command.words)}"\n'
            f'      [[ $current == -* ]] && words="{names}"\n'
            f"      case $previous in\n{values}"
            + (f'        {files}) words="" ;;\n' if files else "")
            + "      esac ;;\n"
        )
    names = " ".join(command.name for command in commands)
    return (
        "# bash completion for bankflip\n"
        "_bankflip() {\n"
        "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=\n"
        "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
        f'    words="{names} --help --version"\n'
        "  else\n"
        "  case ${COMP_WORDS[1]} in\n"
        f"{''.join(cases)}"
        "  esac\n"
        "  fi\n"
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))\n'
        "}\n"
        "complete -o default -o bashdefault -F _bankflip bankflip\n"
    )


def _quoted(text: str, remove: str = "") -> str:
    """A word in single quotes, the same in zsh and fish; `remove` are signs with a meaning."""
    for sign in "'\\" + remove:
        text = text.replace(sign, "")
    return f"'{text}'"


def zsh(commands: tuple[Command, ...]) -> str:
    """A `#compdef` function."""
    lines = "\n".join(f"    {_quoted(f'{c.name}:{c.help}')}" for c in commands)
    cases = []
    for command in commands:
        specs = []
        for option in command.options:
            value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            for name in option.names:
                text = option.help.replace(":", " -").replace("[", "(").replace("]", ")")
                specs.append(_quoted(f"{name}[{text}]{value if option.takes_value else ''}"))
        specs.append(
            _quoted(f"*:file:({' '.join(command.words)})" if command.words else "*:file:_files")
        )
        cases.append(f"    {command.name}) _arguments {' '.join(specs)} ;;")
    return (
        "#compdef bankflip\n"
        "local -a commands\n"
        f"commands=(\n{lines}\n)\n"
        "if (( CURRENT == 2 )); then\n"
        "  _describe 'command' commands\n"
        "  _files\n"
        "else\n"
        "  local command=$words[2]\n"
        "  shift words; (( CURRENT-- ))\n"
        "  case $command in\n" + "\n".join(cases) + "\n  esac\nfi\n"
    )


def fish(commands: tuple[Command, ...]) -> str:
    """`complete` lines."""
    lines = ["# fish completion for bankflip"]
    for command in commands:
        lines.append(
            f"complete -c bankflip -n __fish_use_subcommand -a {command.name} "
            f"-d {_quoted(command.help)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = ""
            if option.takes_value:
                value = " -r"
                if option.choices:
                    value = f" -x -a {_quoted(' '.join(option.choices))}"
            lines.append(f"complete -c bankflip {seen} {names}{value} -d {_quoted(option.help)}")
        if command.words:
            lines.append(f"complete -c bankflip {seen} -f -a {_quoted(' '.join(command.words))}")
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[tuple[Command, ...]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
