"""What several tests of modules compare."""

from __future__ import annotations

import torch


def outputs(module, batch):
    """Mean and log variance of the codes, and what is decoded from the mean."""
    with torch.no_grad():
        mean, log_variance = module.encode(batch)
        return mean, log_variance, module.decode(mean)


def gradients(module, loss):
    """Gradient of a loss by parameter, zeros where it does not depend on one."""
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(parameters.items(), found, strict=True)
    }


def decode_by_hand(module, z, mask=None):
    """The paper's decoder, feature by feature; without a mask, that of a plain VAE."""
    outputs = []
    for j in range(module.n_features):
        h = z if mask is None else mask[j] * z
        if module.decoder.first is not None:
            h = torch.relu(h @ module.decoder.first.T)
            for weight, bias in zip(module.decoder.hidden_weights, module.decoder.hidden_biases, strict=True):
                h = torch.relu(h @ weight.T + bias)
        outputs.append(h @ module.decoder.heads[j] + module.decoder.intercept[j])
    return torch.stack(outputs, -1)


def same_state(one, other):
    """Whether two modules have the same tensors to the last bit."""
    state = other.state_dict()
    assert one.state_dict().keys() == state.keys()
    return all(torch.equal(value, state[name]) for name, value in one.state_dict().items())
