"""The small parts: MLPs, the mixer block, attention, polyline encoders."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radp.model.dropout import Dropout, dropout
from radp.model.quick_linear import linear_of

ROWS_AT_ONCE = 96  # polylines run in pieces of 3 MB, which stay in cache and cause no page faults
HIDDEN = -1e30  # what hides a key: finite, so that no row of an exported graph is ever not a number


class Mlp(nn.Module):
    """(..., a) -> (..., o): fc1, GELU (exact, or by tanh), dropout, fc2, dropout; added to `to` (..., o), if given."""

    def __init__(self, a: int, hidden: int, o: int, rate: float = 0.0, gelu: str = "none") -> None:
        super().__init__()
        self.fc1 = nn.Linear(a, hidden)
        self.fc2 = nn.Linear(hidden, o)
        self.gelu = gelu
        self.dropout = Dropout(rate)

    def forward(self, x: Tensor, to: Tensor | None = None) -> Tensor:
        return self.dropout(linear_of(self.fc2, self.hidden(x)), to)

    def hidden(self, x: Tensor) -> Tensor:
        """(..., a) -> (..., hidden): what the second layer is given."""
        return self.dropout(linear_of(self.fc1, x, self.gelu))


class TokenMlp(Mlp):
    """(N, a, c) -> (N, o, c): the same MLP along the token axis, for each channel alone; no transpose is made."""

    def forward(self, x: Tensor, to: Tensor | None = None) -> Tensor:
        x = self.dropout(F.gelu(_along_tokens(self.fc1, x), approximate=self.gelu))
        return self.dropout(_along_tokens(self.fc2, x), to)


def _along_tokens(linear: nn.Linear, x: Tensor) -> Tensor:
    """(N, a, c) -> (N, o, c): W x + b, one weight matrix for the whole batch."""
    weight = linear.weight.expand(x.shape[0], -1, -1)
    return torch.bmm(weight, x).add_(linear.bias[:, None])


class MixerBlock(nn.Module):
    """(N, n, c) -> (N, n, c): an MLP along tokens, then one along channels, each on a LayerNorm, with residuals."""

    def __init__(self, tokens: int, channels: int, rate: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.tokens_mlp = TokenMlp(tokens, tokens, tokens, rate)
        self.norm2 = nn.LayerNorm(channels)
        self.channels_mlp = Mlp(channels, channels, channels, rate)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokens_mlp(self.norm1(x), to=x)
        return self.channels_mlp(self.norm2(x), to=x)

    def mean(self, x: Tensor) -> Tensor:
        """(N, n, c) -> (N, c): the mean over tokens of what the block gives. Without gradients, and so without dropout,
        it is taken before the last layer, which is linear."""
        if self.training or torch.is_grad_enabled():
            return self(x).mean(1)
        x = self.tokens_mlp(self.norm1(x), to=x)
        return x.mean(1) + self.channels_mlp.fc2(self.channels_mlp.hidden(self.norm2(x)).mean(1))


class PolylineMixer(nn.Module):
    """(N, steps, features) -> (N, channels): project features, project steps to tokens, mix, mean over tokens."""

    def __init__(self, steps: int, features: int, tokens: int, channels: int, depth: int, rate: float) -> None:
        super().__init__()
        self.channel_pre_project = Mlp(features, channels, channels)
        self.token_pre_project = TokenMlp(steps, tokens, tokens)
        blocks = nn.ModuleList(MixerBlock(tokens, channels, rate) for _ in range(depth))
        self.blocks = cast("Sequence[MixerBlock]", blocks)  # the type ModuleList does not say of what

    def forward(self, x: Tensor) -> Tensor:
        x = self.token_pre_project(self.channel_pre_project(x))
        *blocks, last = self.blocks
        for block in blocks:
            x = block(x)
        return last.mean(x)


class FlatPolyline(nn.Module):
    """(N, steps, features) -> (N, channels): one MLP over the flattened polyline."""

    def __init__(self, steps: int, features: int, channels: int) -> None:
        super().__init__()
        self.mlp = Mlp(steps * features, 2 * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(x.flatten(1))


class Attention(nn.Module):
    """Multi-head attention with plain Linear layers q, k, v, o. Keys and values may be made once and used often."""

    def __init__(self, dim: int, heads: int, rate: float) -> None:
        super().__init__()
        self.heads = heads
        self.rate = rate
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.o = nn.Linear(dim, dim)

    def keys_values(self, memory: Tensor, packed: bool = False) -> tuple[Tensor, Tensor]:
        """(B, S, d) -> keys and values, (B, heads, S, d / heads) each; `packed` for those that are used often."""
        k, v = self._split(linear_of(self.k, memory)), self._split(linear_of(self.v, memory))
        return (k.contiguous(), v.contiguous()) if packed else (k, v)

    def forward(self, query: Tensor, keys_values: tuple[Tensor, Tensor], key_bias: Tensor | None) -> Tensor:
        """query (B, Q, d), key_bias (B, 1, 1, S) of `hiding_bias` -> (B, Q, d)."""
        q, (k, v) = self._split(linear_of(self.q, query)), keys_values
        if (self.training and self.rate > 0) or torch.compiler.is_exporting():
            mixed = self._attend_plainly(q, k, v, key_bias)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=key_bias)
        return linear_of(self.o, mixed.transpose(1, 2).flatten(2))

    def _attend_plainly(self, q: Tensor, k: Tensor, v: Tensor, key_bias: Tensor | None) -> Tensor:
        """With dropout; and for graphs, since torch exports its own attention with a copy of all keys."""
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if key_bias is not None:
            scores = scores + key_bias
        return dropout(scores.softmax(-1), self.rate, self.training) @ v

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def hiding_bias(hidden: Tensor) -> Tensor:
    """(B, S) bool, True = not to be seen -> (B, 1, 1, S): what to add to attention scores.

    Key 0 is always seen, since attention over nothing is not a number.
    """
    but_the_first = torch.cat((torch.zeros_like(hidden[:, :1]), hidden[:, 1:]), 1)
    return torch.where(but_the_first, HIDDEN, 0.0)[:, None, None]


def run_valid_rows(body: Callable[..., Tensor], valid: Tensor, width: int, *inputs: Tensor) -> Tensor:
    """valid (B, n) bool, inputs (B, n, ...) -> (B, n, width): body on the valid rows only, zeros elsewhere.

    In an exported graph, where shapes may not depend on values, body runs on all rows.
    """
    if torch.compiler.is_exporting():
        return body(*(values.flatten(0, 1) for values in inputs)).unflatten(0, valid.shape) * valid.unsqueeze(-1)
    where = valid.flatten().nonzero().squeeze(-1)
    pieces = where.split(ROWS_AT_ONCE)
    flat = [values.flatten(0, 1) for values in inputs]
    rows = torch.cat([body(*(values[piece] for values in flat)) for piece in pieces])
    return rows.new_zeros(valid.numel(), width).index_copy(0, where, rows).unflatten(0, valid.shape)
