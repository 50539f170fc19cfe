from __future__ import annotations

import math

import pytest
import torch

from sparsevae.decoder import MaskedDecoder, decode_literal


@pytest.mark.parametrize("hidden_sizes", [(), (8,), (8, 6, 5)])
@pytest.mark.parametrize("replicates", [(), (3,)])
def test_parameters_have_the_shapes_of_the_record(hidden_sizes, replicates):
    decoder = MaskedDecoder(7, 4, hidden_sizes, replicates=replicates)
    weights = decoder.weights()
    widths = (4, *hidden_sizes)
    assert weights.depth == len(hidden_sizes)
    assert weights.replicates == replicates
    assert weights.heads.shape == (*replicates, 7, widths[-1])
    assert weights.intercept.shape == (*replicates, 7)
    if hidden_sizes:
        assert weights.first.shape == (*replicates, widths[1], 4)
    for (weight, bias), below, above in zip(weights.hidden, widths[1:], widths[2:], strict=False):
        assert weight.shape == (*replicates, above, below)
        assert bias.shape == (*replicates, above)
    assert {id(tensor) for tensor in weights.tensors()} == {id(tensor) for tensor in decoder.parameters()}


def test_the_start_keeps_the_size_of_activations(generator):
    weights = MaskedDecoder(500, 50, (400, 300), generator=generator).weights()
    assert weights.first.std().item() == pytest.approx(math.sqrt(2 / 50), rel=0.05)
    assert weights.hidden[0][0].std().item() == pytest.approx(math.sqrt(2 / 400), rel=0.05)
    assert weights.heads.std().item() == pytest.approx(math.sqrt(1 / 300), rel=0.05)
    assert torch.all(weights.hidden[0][1] == 0)
    assert torch.all(weights.intercept == 0)


def test_the_generator_alone_decides_the_start():
    starts = []
    for seed in (1, 1, 2):
        torch.rand(1)
        generator = torch.Generator().manual_seed(seed)
        starts.append(MaskedDecoder(5, 3, (4,), generator=generator).heads)
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


@pytest.mark.parametrize("replicates", [(), (2,)])
def test_a_subset_of_features_is_a_part_of_the_whole(generator, replicates):
    decoder = MaskedDecoder(7, 4, (8, 6), replicates=replicates, generator=generator)
    mask = torch.randn(*replicates, 7, 4, generator=generator)
    z = torch.randn(*replicates, 9, 4, generator=generator)
    features = torch.tensor([5, 1])
    torch.testing.assert_close(decoder(mask, z, features), decoder(mask, z)[..., features])
    torch.testing.assert_close(decoder(None, z, features), decoder(None, z)[..., features])


def test_gradients_of_random_subsets_average_to_the_gradient_of_the_whole(generator):
    decoder = MaskedDecoder(6, 4, (8, 6), generator=generator).double()
    mask = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    z = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    target = torch.randn(9, 6, generator=generator, dtype=torch.float64)
    inputs = [mask, *decoder.parameters()]

    def gradient(features):
        chosen = torch.tensor(features)
        loss = (decoder(mask, z, chosen) - target[:, chosen]).square().sum() * 6 / len(features)
        return torch.autograd.grad(loss, inputs)

    pairs = [gradient([a, b]) for a in range(6) for b in range(a)]
    for number, whole in enumerate(gradient(list(range(6)))):
        torch.testing.assert_close(sum(pair[number] for pair in pairs) / len(pairs), whole)


def test_the_module_is_the_loop(generator):
    decoder = MaskedDecoder(7, 4, (8, 6), generator=generator)
    mask, z = torch.randn(7, 4, generator=generator), torch.randn(9, 4, generator=generator)
    torch.testing.assert_close(decoder(mask, z), decode_literal(mask, z, decoder.weights()))
    torch.testing.assert_close(decoder(None, z), decoder(torch.ones(7, 4), z))


def test_a_saved_decoder_decodes_the_same(generator):
    decoder, other = (MaskedDecoder(7, 4, (8, 6, 5), generator=generator) for _ in range(2))
    other.load_state_dict(decoder.state_dict())
    mask, z = torch.randn(7, 4, generator=generator), torch.randn(9, 4, generator=generator)
    assert torch.equal(decoder(mask, z), other(mask, z))


@pytest.mark.parametrize("sizes", [(0, 4, (8,)), (7, 0, (8,)), (7, 4, (8, 0))])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="Expected positive sizes; got"):
        MaskedDecoder(*sizes)


def test_repr_states_the_sizes():
    assert "n_features=7, n_factors=4, hidden_sizes=(8, 6)" in repr(MaskedDecoder(7, 4, [8, 6]))
