"""The forward pass of a decoder as one list of stages.

The list is the order of execution. A stage's function is in the module of its part; names of
values begin with the layer they belong to.
"""

from __future__ import annotations

from functools import partial

from engine.config import Config
from engine.graph import attention, gdn, hyper, index, moe, ple
from engine.graph.embed import embed
from engine.graph.head import head
from engine.graph.model import Model
from engine.stage import Stage

__all__ = ["graph_stages"]


def graph_stages(model: Model) -> tuple[Stage, ...]:
    """All stages of a model, `embed` to `head`."""
    stages = [Stage("embed", embed, ("tokens",), ("streams",), ("streams",), "streams")]
    for layer in range(len(model.config.layers)):
        stages += _layer(model.config, layer)
    out = ("final", "logits")
    writes = (*out, "residual", "logits")
    stages.append(
        Stage(
            "head",
            head,
            reads=("streams",),
            writes=writes,
            floats=out,
            poison="logits",
            probed=("logits",),
            keeps=(("logits", "logits"),),
        )
    )
    return tuple(stages)


def _layer(c: Config, n: int) -> list[Stage]:
    """The stages of one layer."""
    p = f"layer.{n}."
    stages = [_ple(n)] if n in c.ple_layers else []
    mixed, routed = (p + "mixer_in", p + "mixer_inject"), (p + "moe_in", p + "moe_inject")
    stages.append(_mix(p + "mix_in", partial(hyper.mix_in, layer=n), mixed))
    stages += [_gdn(n)] if c.layers[n] == "gdn" else _qsa(n)
    probs, chosen, shared = p + "moe.probs", p + "moe.experts", p + "moe.shared_in"
    weights, out = p + "moe.weights", p + "moe_out"
    return [
        *stages,
        _mix(p + "mix_mlp", partial(hyper.mix_mlp, layer=n), routed),
        Stage(
            p + "moe.route",
            partial(moe.route, layer=n),
            reads=(routed[0],),
            writes=(probs, chosen, shared, "routes"),
            floats=(probs, shared),
            poison=routed[0],
            probed=(probs, shared),
            poison_before=True,
        ),
        Stage(
            p + "moe.experts",
            partial(moe.experts, layer=n),
            reads=("streams", *routed, probs, chosen, shared),
            writes=("streams", out, weights),
            floats=(weights, out, "streams"),
            poison=out,
        ),
    ]


def _mix(name: str, run: partial[None], out: tuple[str, str]) -> Stage:
    return Stage(name, run, ("streams",), out, out, out[0])


def _ple(n: int) -> Stage:
    p = f"layer.{n}.ple."
    floats = (p + "dot", p + "out", p + "window")
    return Stage(
        f"layer.{n}.ple",
        partial(ple.ple, layer=n),
        reads=("tokens", "streams", "ple.history", "ple.conv"),
        writes=(*floats, p + "rows", "streams", "ple.history", "ple.conv"),
        floats=(*floats, "streams"),
        poison=p + "out",
        probed=(p + "dot", p + "window"),
        whole=(p + "window",),
        keeps=((p + "window", "ple.conv"),),
    )


def _gdn(n: int) -> Stage:
    p = f"layer.{n}."
    floats = (p + "mixer_out", p + "gdn.window", p + "gdn.state")
    return Stage(
        p + "gdn",
        partial(gdn.gdn, layer=n),
        reads=(p + "mixer_in", p + "mixer_inject", "streams", "gdn.conv", "gdn.recurrent"),
        writes=(*floats, "streams", "gdn.conv", "gdn.recurrent"),
        floats=(*floats, "streams"),
        poison=p + "mixer_out",
        probed=floats[1:],
        whole=floats[1:],
        keeps=((p + "gdn.window", "gdn.conv"), (p + "gdn.state", "gdn.recurrent")),
    )


def _qsa(n: int) -> list[Stage]:
    p, m = f"layer.{n}.qsa.", f"layer.{n}."
    projected = tuple(p + x for x in ("q", "gate", "index_q", "k", "v", "raw"))
    query, pooled, scores, groups = p + "index_q", p + "pooled", p + "scores", p + "groups"
    out = (p + "mixed", m + "mixer_out", "streams")
    return [
        Stage(
            p + "project",
            partial(attention.project, layer=n),
            reads=(m + "mixer_in",),
            writes=(*projected, "qsa.kv", "qsa.index"),
            floats=projected,
            poison=p + "q",
            probed=projected,
            keeps=((p + "k", "qsa.kv"), (p + "v", "qsa.kv"), (p + "raw", "qsa.index")),
        ),
        # integers only: its check looks once more at the queries that the groups are for
        Stage(
            p + "partition",
            partial(index.partition, layer=n),
            reads=("qsa.kv", query),
            writes=(),
            floats=(query,),
            poison=query,
            probed=(query,),
        ),
        Stage(
            p + "pool",
            partial(index.pool, layer=n),
            reads=("qsa.index",),
            writes=(pooled, "qsa.groups"),
            floats=(pooled,),
            poison=pooled,
            probed=(pooled,),
            whole=(pooled,),
            keeps=((pooled, "qsa.groups"),),
        ),
        Stage(
            p + "select",
            partial(index.select, layer=n),
            reads=(query, "qsa.groups"),
            writes=(scores, groups),
            floats=(scores,),
            poison=query,
            probed=(scores,),
            poison_before=True,
        ),
        Stage(
            p + "attend",
            partial(attention.attend, layer=n),
            reads=(p + "q", p + "gate", groups, "qsa.kv", m + "mixer_inject", "streams"),
            writes=out,
            floats=out,
            poison=m + "mixer_out",
        ),
    ]
