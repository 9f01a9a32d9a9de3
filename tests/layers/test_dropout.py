"""Dropout, layer drop and what is done to gradients."""

from __future__ import annotations

import pytest
import torch

from sonant.layers.attention import SelfAttention, may_see
from sonant.layers.dropout import Dropout, dropout
from sonant.layers.gradients import scaled_gradient, with_zero_gradients
from sonant.layers.layer_drop import draw_of, is_dropped
from sonant.layers.linear import Linear
from sonant.layers.transformer import Transformer, TransformerConfig


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_the_share_that_is_dropped_is_the_one_asked_for_and_the_mean_stays(probability):
    torch.manual_seed(0)
    x = torch.ones(1001, 997)
    y = dropout(x, probability)
    assert (y == 0).float().mean().item() == pytest.approx(probability, abs=0.002)
    assert y.mean().item() == pytest.approx(1, abs=0.006 / (1 - probability))
    assert y.unique().numel() == 2


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    kept = (dropout(torch.ones(1_000_000), 0.5) != 0).float()
    for distance in (1, 2, 3, 4, 5):
        assert torch.corrcoef(torch.stack([kept[distance:], kept[:-distance]]))[0, 1].abs() < 0.005, distance


def test_the_same_generator_drops_the_same_and_gradients_go_where_values_went():
    x = torch.randn(50, 20, requires_grad=True)
    torch.manual_seed(3)
    first = dropout(x, 0.3)
    torch.manual_seed(3)
    torch.testing.assert_close(dropout(x, 0.3), first)
    first.sum().backward()
    torch.testing.assert_close(x.grad != 0, first != 0)


def test_nothing_is_dropped_in_evaluation():
    x = torch.randn(5)
    assert Dropout(0.5).eval()(x) is x


def test_a_linear_layer_is_that_of_torch_in_values_and_gradients():
    torch.manual_seed(0)
    ours, theirs = Linear(7, 5), torch.nn.Linear(7, 5)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 7)
    a, b = ours(x), theirs(x)
    torch.testing.assert_close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)
    assert ours(torch.zeros(2, 0, 7)).shape == (2, 0, 5)


def test_attention_with_hardly_any_dropout_is_attention_without():
    torch.manual_seed(0)
    attention = SelfAttention(16, 4, dropout=1e-9)
    x = torch.randn(2, 9, 16)
    is_real = torch.arange(9) < torch.tensor([[9], [4]])
    with_dropout = attention.train()(x, may_see(is_real))
    torch.testing.assert_close(with_dropout, attention.eval()(x, may_see(is_real)), rtol=1e-4, atol=1e-6)


def test_dropout_in_attention_changes_the_answer():
    torch.manual_seed(0)
    attention = SelfAttention(16, 4, dropout=0.5)
    x = torch.randn(2, 9, 16)
    assert not torch.allclose(attention.train()(x, None), attention.eval()(x, None))


def test_layers_are_dropped_as_often_as_asked_for_and_alike_for_everybody():
    dropped = [is_dropped(layer, 0.2, draw_of(7, step)) for layer in range(4) for step in range(2000)]
    assert sum(dropped) / len(dropped) == pytest.approx(0.2, abs=0.02)
    assert dropped[:50] == [is_dropped(0, 0.2, draw_of(7, step)) for step in range(50)]
    assert dropped[:2000] != [is_dropped(0, 0.2, draw_of(8, step)) for step in range(2000)]


def test_a_dropped_layer_passes_its_input_on_and_gets_gradients_of_zero():
    torch.manual_seed(0)
    config = TransformerConfig(width=8, hidden_width=16, num_layers=3, num_heads=2, layer_drop=0.5, norm_first=True)
    transformer = Transformer(config).train()
    draw = next(d for d in range(1000) if [is_dropped(n, 0.5, d) for n in range(3)] == [False, True, False])
    states = transformer(torch.randn(1, 4, 8), None, draw)
    assert states[2] is not states[0]
    torch.testing.assert_close(states[2], states[1])
    states[-1].sum().backward()
    assert all(not p.grad.any() for p in transformer.layers[1].parameters())
    assert any(p.grad.any() for p in transformer.layers[0].parameters())


def test_without_a_draw_and_in_evaluation_no_layer_is_dropped():
    config = TransformerConfig(width=8, hidden_width=16, num_layers=2, num_heads=2, layer_drop=0.99, dropout=0.0)
    torch.manual_seed(0)
    transformer = Transformer(config).eval()
    x = torch.randn(1, 4, 8)
    torch.testing.assert_close(transformer(x, None, 5)[-1], transformer(x, None)[-1])


def test_a_scaled_gradient_leaves_values_alone():
    x = torch.randn(3, requires_grad=True)
    y = scaled_gradient(x, 0.1)
    torch.testing.assert_close(y, x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 0.1))


def test_parameters_without_a_part_get_zeros_and_frozen_ones_nothing():
    x = torch.randn(3, requires_grad=True)
    free, frozen = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2), requires_grad=False)
    with_zero_gradients(x, [free, frozen]).sum().backward()
    assert not free.grad.any()
    assert frozen.grad is None
    torch.testing.assert_close(x.grad, torch.ones(3))
