import numpy as np
import pytest
import torch

from skident._nn.losses import Reconstruction, SquaredError
from skident._nn.modules import Autoencoder, VariationalAutoencoder, perceptron
from skident._nn.states import history_arrays, load_optimizer, optimizer_arrays
from skident._nn.threads import _SMALL_STEP, _OneThread, fitting_threads, seeded
from skident._nn.training import (
    Schedule,
    _Batches,
    build_net,
    hold_out,
    resolve_device,
    resolve_epochs,
    train,
)

CPU = torch.device("cpu")


def rows(n=64, width=5):
    return torch.from_numpy(
        np.random.default_rng(0).standard_normal((n, width)).astype(np.float32)
    )


def objective(width=5, **options):
    return Reconstruction(SquaredError(torch.zeros(width), 1.0), **options)


def new_net(schedule, width=5):
    with seeded(0):
        return build_net(
            Autoencoder(width, 2, (8,), 0.2), objective(width), schedule, CPU
        )


def hand_loop(schedule, X):
    """Plain torch: same start, same batches, same step sizes."""
    with seeded(0):
        module = Autoencoder(X.shape[1], 2, (8,), 0.2)
    optimizer = torch.optim.AdamW(
        module.parameters(),
        lr=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
        fused=True,
    )
    with seeded(1):
        for epoch in range(schedule.max_epochs):
            turn = np.cos(np.pi * epoch / schedule.max_epochs)
            for group in optimizer.param_groups:
                group["lr"] = 0.5 * schedule.learning_rate * (1 + turn)
            for index in torch.randperm(len(X)).split(schedule.batch_size):
                optimizer.zero_grad()
                loss = (module(X[index]) - X[index]).square().sum(-1).mean()
                loss.backward()
                optimizer.step()
    return module


def test_training_equals_a_hand_written_loop():
    schedule = Schedule(1e-2, 1e-3, 10, 4)
    net = new_net(schedule)
    with seeded(1):
        train(net, rows(), None, schedule, verbose=0, description="")
    expected = hand_loop(schedule, rows()).state_dict()
    for name, weights in net.module_.state_dict().items():
        torch.testing.assert_close(weights, expected[name], rtol=1e-6, atol=1e-7)


def test_best_epoch_is_restored():
    schedule = Schedule(0.3, 0.0, 8, 30)
    X = rows(40)
    net = new_net(schedule)
    with seeded(1):
        train(net, X[:8], X[8:], schedule, verbose=0, description="")
    history = history_arrays(net)
    best = history["valid_loss"].min()
    assert best < history["valid_loss"][-1]
    with torch.inference_mode():
        loss = float(net.criterion_(net.module_, X[8:]))
    assert loss == pytest.approx(best, rel=1e-5)


def test_optimizer_goes_back_to_the_best_epoch_too():
    schedule = Schedule(0.3, 0.0, 8, 30)
    X = rows(40)

    def trained(held_out, epochs):
        net = new_net(schedule)
        schedule_now = schedule._replace(max_epochs=epochs, constant=True)
        with seeded(1):
            train(net, X[:8], held_out, schedule_now, verbose=0, description="")
        return net

    net = trained(X[8:], 30)
    best = 1 + int(np.argmin(history_arrays(net)["valid_loss"]))
    state, expected = optimizer_arrays(net), optimizer_arrays(trained(None, best))
    assert best < 30 and state.keys() == expected.keys()
    for key in state:
        np.testing.assert_array_equal(state[key], expected[key])


def test_patience_stops_the_training():
    schedule = Schedule(0.3, 0.0, 8, 200, patience=3)
    X = rows(40)
    net = new_net(schedule)
    with seeded(1):
        assert train(net, X[:8], X[8:], schedule, verbose=0, description="")
    losses = history_arrays(net)["valid_loss"]
    assert len(losses) == losses.argmin() + 1 + 3 < 200


def test_warm_up_ends_at_one_and_its_epochs_are_never_best():
    seen = []

    class Recorder(Reconstruction):
        beta = 1.0

        def forward(self, module, x):
            seen.append(self.beta)
            return super().forward(module, x)

    schedule = Schedule(1e-3, 0.0, 64, 10, kl_warmup=0.99)
    recorder = Recorder(SquaredError(torch.zeros(5), 1.0))
    net = build_net(Autoencoder(5, 2, (8,), 0.2), recorder, schedule, CPU)
    train(net, rows(), None, schedule, verbose=0, description="")
    assert seen == pytest.approx([k / 9 for k in range(10)])


@pytest.mark.parametrize("n_held", [None, 16])
def test_interrupt_restores_the_last_whole_epoch_and_is_raised(n_held, monkeypatch):
    schedule = Schedule(1e-2, 0.0, 16, 10)
    X = rows()
    reference = new_net(schedule)
    with seeded(1):
        train(reference, X, None, schedule._replace(), verbose=0, description="")
    net = new_net(schedule)
    steps, descend = [], type(net)._descend

    def interrupted(self, batch):
        steps.append(1)
        if len(steps) == 3 * 4 + 2:  # in the middle of the fourth epoch
            raise KeyboardInterrupt
        return descend(self, batch)

    kept = {}

    def remember(net, **kwargs):
        kept[len(net.history)] = {
            k: v.clone() for k, v in net.module_.state_dict().items()
        }

    monkeypatch.setattr(type(net), "_descend", interrupted)
    monkeypatch.setattr(
        type(net), "on_epoch_end", lambda self, *a, **kw: remember(self)
    )
    held = None if n_held is None else rows(n_held)
    with seeded(1), pytest.raises(KeyboardInterrupt):
        train(net, X, held, schedule, verbose=0, description="")
    best = 3
    if held is not None:
        best = 1 + int(np.argmin(history_arrays(net)["valid_loss"]))
    for name, weights in net.module_.state_dict().items():
        assert torch.equal(weights, kept[best][name])


def test_loss_that_is_not_finite_names_the_epoch():
    schedule = Schedule(1e20, 0.0, 64, 10)
    net = new_net(schedule)
    with pytest.raises(FloatingPointError, match=r"in epoch [12345]: lower learning"):
        train(net, rows(), None, schedule, verbose=0, description="")


def test_validation_loss_that_is_not_finite_is_named_too():
    schedule = Schedule(1e-3, 0.0, 64, 10)
    held = rows(8)
    held[3, 2] = torch.nan
    with pytest.raises(FloatingPointError, match="validation loss became nan in epoch"):
        train(new_net(schedule), rows(), held, schedule, verbose=0, description="")


def test_a_last_batch_of_one_row_joins_the_one_before():
    def sizes(n, batch_size, *, shuffle=True):
        batches = _Batches(rows(n), batch_size, shuffle=shuffle)
        found = [len(batch) for batch in batches]
        assert found == batches.sizes and sum(found) == n
        return found

    assert sizes(9, 4) == [4, 5]
    assert sizes(9, 4, shuffle=False) == [4, 4, 1]
    assert sizes(10, 4) == [4, 4, 2]
    assert sizes(1, 4) == [1]
    assert sizes(5, 4) == [5]
    assert sizes(3, 1) == [1, 1, 1]


def test_each_epoch_takes_each_row_once():
    X = torch.arange(23.0)[:, None]
    with seeded(0):
        batches = torch.cat(list(_Batches(X, 11, shuffle=True)))
    assert sorted(batches[:, 0].tolist()) == list(range(23))
    assert batches[:, 0].tolist() != list(range(23))


def test_gradients_are_cut_to_a_length():
    """With a length of zero but rounding, AdamW without decay stays where it was."""

    def moved(length):
        # plain descent shows the length of a step; Adam would divide it out
        schedule = Schedule(1.0, 0.0, 64, 1, max_grad_norm=length, constant=True)
        net = new_net(schedule)
        net.optimizer_ = torch.optim.SGD(net.module_.parameters(), lr=1.0)
        before = [p.detach().clone() for p in net.module_.parameters()]
        train(net, rows(), None, schedule, verbose=0, description="")
        return float(
            sum(
                (p.detach() - b).square().sum()
                for p, b in zip(net.module_.parameters(), before, strict=True)
            ).sqrt()
        )

    assert moved(1e-3) == pytest.approx(1e-3, rel=1e-3)
    assert moved(1e9) == pytest.approx(moved(None), rel=1e-4) and moved(None) > 0.1


def test_optimizer_goes_on_from_its_arrays():
    schedule = Schedule(1e-2, 1e-3, 16, 2, constant=True)
    whole, half = new_net(schedule), new_net(schedule)
    with seeded(1):
        train(whole, rows(), None, schedule, verbose=0, description="")
        train(whole, rows(), None, schedule, verbose=0, description="")
    with seeded(1):
        train(half, rows(), None, schedule, verbose=0, description="")
        other = new_net(schedule)
        other.module_.load_state_dict(half.module_.state_dict())
        load_optimizer(other, optimizer_arrays(half))
        state = torch.random.get_rng_state()
    with seeded(0):
        torch.random.set_rng_state(state)
        train(other, rows(), None, schedule, verbose=0, description="")
    expected = whole.module_.state_dict()
    for name, weights in other.module_.state_dict().items():
        assert torch.equal(weights, expected[name])


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
def test_hold_out_is_a_partition_with_at_least_one_row_either_side(n):
    X = torch.arange(n)[:, None]
    with seeded(0):
        train_rows, held = hold_out(X, 0.1)
    assert len(held) == max(1, round(0.1 * n))
    assert sorted(torch.cat([train_rows, held]).flatten().tolist()) == list(range(n))


def test_seeded_leaves_the_global_generator():
    before = torch.random.get_rng_state()
    with seeded(3):
        first = torch.rand(3)
    with seeded(3):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_epochs_by_number_of_steps():
    assert resolve_epochs(7, 100, 10, n_steps=1000) == 7
    assert resolve_epochs("auto", 1000, 10, n_steps=5000) == 50
    assert resolve_epochs("auto", 10**7, 10, n_steps=5000) == 20
    assert resolve_epochs("auto", 5, 10, n_steps=5000) == 500


def test_unknown_device_is_named():
    assert resolve_device("cpu") == CPU
    with pytest.raises(ValueError, match="device='abacus' cannot be used"):
        resolve_device("abacus")


def test_perceptron_of_no_hidden_layer_is_linear():
    layers = perceptron((3, 2), torch.nn.ReLU)
    assert [type(layer) for layer in layers] == [torch.nn.Linear]


def test_log_variance_is_bounded_smoothly():
    module = VariationalAutoencoder(4, 4, 2, ())
    with torch.no_grad():
        _, log_var = module.encode(1e6 * torch.randn(100, 4))
    assert log_var.min() >= -12 and log_var.max() <= 4


def test_one_thread_while_anything_is_inside_and_restored():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        limit = _OneThread()
        with limit:
            with limit:
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyboardInterrupt), limit:
            raise KeyboardInterrupt
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_large_steps_keep_their_threads():
    net = new_net(Schedule(1e-3, 0.0, 8, 1))
    n_weights = sum(p.numel() for p in net.module_.parameters())
    assert isinstance(fitting_threads(net, 8), _OneThread)
    assert not isinstance(
        fitting_threads(net, _SMALL_STEP // n_weights + 1), _OneThread
    )
