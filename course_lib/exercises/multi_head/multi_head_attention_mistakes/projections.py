"""Mistakes in `MultiHeadAttention`: the projections."""

from __future__ import annotations

from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import attend_with, variant

mistake = Mistakes()


WIRING = "multi_head: One Linear for all heads"
FORMULA = "multi_head: The formula"


def _projected(first, second, third):
    """Projections as pairs of layer and argument, such as "kv" for k_proj(value); "-v" leaves the value as it is."""

    def project(self, query, key, value):
        inputs = {"q": query, "k": key, "v": value}
        layers = {"q": self.q_proj, "k": self.k_proj, "v": self.v_proj, "-": nn.Identity()}
        return tuple(layers[layer](inputs[x]) for layer, x in (first, second, third))

    return project


def _untransposed(layer, x):
    return x @ layer.weight + layer.bias


@mistake.built(look=WIRING)
def values_by_k_proj():
    """The values go through `k_proj`, and `v_proj` is never used."""
    return variant(project=_projected("qq", "kk", "kv"))


@mistake.built(look=WIRING)
def keys_by_q_proj():
    """The keys go through `q_proj`, and `k_proj` is never used."""
    return variant(project=_projected("qq", "qk", "vv"))


@mistake.built(look=WIRING)
def values_by_q_proj():
    """The values go through `q_proj`, and `v_proj` is never used."""
    return variant(project=_projected("qq", "kk", "qv"))


@mistake.built(look=WIRING)
def keys_by_v_proj():
    """The keys go through `v_proj`, and `k_proj` is never used."""
    return variant(project=_projected("qq", "vk", "vv"))


@mistake.built(look=WIRING)
def q_proj_for_all():
    """All three inputs go through `q_proj`. Each has a projection of its own."""
    return variant(project=_projected("qq", "qk", "qv"))


@mistake.built(look=WIRING)
def k_proj_for_all():
    """All three inputs go through `k_proj`. Each has a projection of its own."""
    return variant(project=_projected("kq", "kk", "kv"))


@mistake.built(look=WIRING)
def v_proj_for_all():
    """All three inputs go through `v_proj`. Each has a projection of its own."""
    return variant(project=_projected("vq", "vk", "vv"))


@mistake.built(look=WIRING)
def queries_by_k_proj():
    """The queries go through `k_proj`, and `q_proj` is never used."""
    return variant(project=_projected("kq", "kk", "vv"))


@mistake.built(look=WIRING)
def q_and_k_proj_exchanged():
    """`q_proj` and `k_proj` are exchanged."""
    return variant(project=_projected("kq", "qk", "vv"))


@mistake.built(look=WIRING)
def k_and_v_proj_exchanged():
    """`k_proj` and `v_proj` are exchanged."""
    return variant(project=_projected("qq", "vk", "kv"))


@mistake.built(look=WIRING)
def keys_and_values_exchanged():
    """`key` and `value` are exchanged: the queries are compared with the values."""
    return variant(project=_projected("qq", "kv", "vk"))


@mistake.built(look=WIRING)
def values_from_keys():
    """`v_proj` gets the key. In self-attention that makes no difference."""
    return variant(project=_projected("qq", "kk", "vk"))


@mistake.built(look=WIRING)
def keys_from_values():
    """`k_proj` gets the value. In self-attention that makes no difference."""
    return variant(project=_projected("qq", "kv", "vv"))


@mistake.built(look=WIRING)
def keys_from_queries():
    """`k_proj` gets the query. In self-attention that makes no difference."""
    return variant(project=_projected("qq", "kq", "vv"))


@mistake.built(look=WIRING)
def values_from_queries():
    """`v_proj` gets the query. In self-attention that makes no difference."""
    return variant(project=_projected("qq", "kk", "vq"))


@mistake.built(look=WIRING)
def queries_for_all():
    """`key` and `value` are never used: all three projections get the query. That would be self-attention only."""
    return variant(project=_projected("qq", "kq", "vq"))


@mistake.built(look=WIRING)
def keys_for_all():
    """`query` is never used, or used as the key: all three projections get the same input. That would be self-attention
    only."""
    return variant(project=_projected("qk", "kk", "vk"))


@mistake.built(look=WIRING)
def query_last():
    """The arguments are taken in the order value, key, query. The contract has query, key, value; in self-attention a
    test of the output alone would not detect this."""
    return variant(project=_projected("qv", "kk", "vq"))


@mistake.built(look=WIRING)
def queries_not_projected():
    """The queries are used directly, without `q_proj`."""
    return variant(project=_projected("-q", "kk", "vv"))


@mistake.built(look=WIRING)
def keys_not_projected():
    """The keys are used directly, without `k_proj`."""
    return variant(project=_projected("qq", "-k", "vv"))


@mistake.built(look=WIRING)
def values_not_projected():
    """The values are used directly, without `v_proj`."""
    return variant(project=_projected("qq", "kk", "-v"))


@mistake.built(look=WIRING)
def nothing_projected():
    """No input is projected, so all heads just see slices of the input."""
    return variant(project=_projected("-q", "-k", "-v"))


@mistake.built(look=FORMULA)
def no_out_proj():
    """The heads' results are returned side by side, without `out_proj`, which would mix them."""
    return variant(out=lambda self, merged, query: merged)


@mistake.built(look=WIRING)
def queries_and_keys_not_projected():
    """Queries and keys are used directly. They need their projections most, because these determine what a head attends
    to."""
    return variant(project=_projected("-q", "-k", "vv"))


@mistake.built
def weights_turned_for_values():
    """The transposed weights multiply the values, so the sum runs over the queries. In self-attention the shapes even
    fit. Which axis of the weights runs over the keys?"""
    return variant(
        attend=lambda q, k, v, mask: (lambda w: (w.transpose(-2, -1) @ v, w))(attend_with()(q, k, k, mask)[1])
    )


@mistake.built
def keys_ask_queries():
    """The scores have one row per key: queries and keys are exchanged in the product. In self-attention the shapes even
    fit."""
    return variant(attend=lambda q, k, v, mask: attend_with()(k, q, v, mask))


@mistake.built(look=WIRING)
def weights_times_keys():
    """The keys are averaged with the weights. The keys determine the weights, but the values should be averaged."""
    return variant(attend=lambda q, k, v, mask: attend_with()(q, k, k, mask))


@mistake.built
def residual_inside():
    """The query is added to the output. The residual connection belongs to the encoder layer, not to attention."""
    return variant(out=lambda self, merged, query: self.out_proj(merged) + query)


@mistake.built
def out_proj_twice():
    """`out_proj` is applied twice, to its own output or to its input."""
    return variant(out=lambda self, merged, query: self.out_proj(self.out_proj(merged)))


@mistake.built(look=WIRING)
def matrices_not_transposed():
    """The inputs are multiplied by the layers' `weight` without a transpose. A Linear stores it as (out, in) and
    multiplies by the transpose; the matrix is square, so no error is raised. Calling the layer is easier."""
    return variant(
        project=lambda self, query, key, value: (
            _untransposed(self.q_proj, query),
            _untransposed(self.k_proj, key),
            _untransposed(self.v_proj, value),
        ),
        out=lambda self, merged, query: _untransposed(self.out_proj, merged),
    )


@mistake.built(look=WIRING)
def biases_forgotten():
    """The layers' matrices are used, but their biases are not. Calling a layer applies both."""
    return variant(
        project=lambda self, query, key, value: (
            query @ self.q_proj.weight.T,
            key @ self.k_proj.weight.T,
            value @ self.v_proj.weight.T,
        ),
        out=lambda self, merged, query: merged @ self.out_proj.weight.T,
    )
