"""Tables with holes, groups, levels and drift: what the fits make of them."""
