# A small source with every form in which vLLM defines flags.
from typing import Annotated, Literal, Optional

Level = Literal["low", "high"]
MoreLevels = Literal[Level, "highest"]
KNOWN = ["a", "b"]
OPEN = ["a"]
OPEN.extend(plugins())


@config
class ThingConfig:
    """A docstring: with "quotes", (brackets and a colon."""

    enabled: bool = False
    """After a field."""
    maybe: Optional[bool] = None
    token: bool | str | None = None
    level: MoreLevels = "low"
    level_or_none: Level | None = field(
        default=None,
        metadata={"a": ("b", ")")},
    )
    level_or_text: Level | str = "low"
    names: list[str] = field(default_factory=list)
    size: Annotated[int, Field(gt=0)] = 1

    def method(self):
        local: int = 3


class FrontendArgs:
    host: str | None = None
    reload: bool = False
    """Some 'text'."""


def add_cli_args(parser):
    thing_kwargs = get_kwargs(ThingConfig)
    parser.add_argument("model_tag", nargs="?", help="A positional one.")
    parser.add_argument("--enabled", **thing_kwargs["enabled"])
    group.add_argument(
        "--maybe",  # A comment with a ' in it.
        **{
            **thing_kwargs["maybe"],
            "default": None,
        },
    )
    group.add_argument("--token", **thing_kwargs["token"])
    group.add_argument("--level", "-l", **thing_kwargs["level"])
    group.add_argument('--level-or-none', **thing_kwargs['level_or_none'])
    group.add_argument("--level-or-text", **thing_kwargs["level_or_text"])
    group.add_argument("--names", **thing_kwargs["names"])
    group.add_argument("--size", **thing_kwargs["size"])
    group.add_argument("--other", **unknown_kwargs["other"])
    group.add_argument("--switch", action="store_true", help=f"default: {x}")
    group.add_argument("--old-switch", action=StoreBoolean, nargs="?", const="True")
    group.add_argument("--known", type=str, choices=KNOWN)
    group.add_argument("--open", choices=OPEN)
    group.add_argument("--computed", choices=[*KNOWN, "c"])
    group.add_argument("--level-of", choices=get_args(Level), default=r'\d')
    group.add_argument("--both", action=argparse.BooleanOptionalAction)
    for key, value in frontend_kwargs.items():
        group.add_argument(f"--{key}", **value)
