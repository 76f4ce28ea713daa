"""Networks, likelihoods, losses and the one training loop."""
