# A small source with every form in which SGLang defines flags.
@dataclasses.dataclass
class ServerArgs:
    model_path: A[
        str,
        Arg(
            help="Several, commas (and brackets) "
            "in a text",
            aliases=["--model"],
        ),
        NS("model"),
    ]
    tp_size: A[int, Arg(help="x", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1
    trust: A[bool, "Text alone."] = False
    mode: A[Optional[Literal["auto", "off"]], "x", NS("a")] = None
    kind: A[str, Arg(help="x", choices=["one", "two"])] = "one"
    paths: A[Optional[List[str]], "x"] = None
    list_in_one: A[Optional[List[str]], Arg(help="x", type_parser=json_list)] = None
    some: A[Optional[List[str]], Arg(help="x", nargs="*", action=PathAction)] = None
    hidden: A[Optional[dict], Arg(no_cli=True)] = None
    plain: int = 3

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--old", action=DeprecatedAction, help="x")
        parser.add_argument("--alias", action=DeprecatedAliasStoreAction, new_flag="--kind", type=str)
