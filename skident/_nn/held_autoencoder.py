"""What an autoencoder with scikit-learn's face does with its network."""

import numpy as np
import torch

from skident._nn.architectures import (
    check_conv_shape,
    check_image_shape,
    new_module,
)
from skident._nn.held import HeldNet, check_layer_sizes
from skident._nn.jacobians import batched_jacobian
from skident._nn.layers import Apart, holds_tensors, put_together, take_apart
from skident._nn.losses import ERRORS, Reconstruction
from skident._nn.masks import RandomMask
from skident._nn.rows import (
    MappedRows,
    as_tensor,
    check_unit_interval,
    column_statistics,
    cross_entropy_of_means,
    in_network_units,
    is_mapped,
)
from skident._nn.threads import seeded
from skident._nn.training import Schedule, build_net, resolve_device, resolve_epochs
from skident._nn.user_modules import (
    check_module_class,
    check_new_weights,
    check_rebuilt,
    check_widths,
)

_N_STEPS = 3000
# Rows a block of inference, so few that a layer's output stays in the cache of a CPU,
# and numbers that a block of rows may hold: 16 MiB.
_BLOCK, _BLOCK_ON_CARD, _BLOCK_NUMBERS = 1024, 8192, 2**22


def _with_options(state, change):
    """Return a state with the arguments of a module changed."""
    state, key = dict(state), "module_params"
    if state.get(key):
        state[key] = change(state[key])
    if "_architecture" in state:
        architecture = dict(state["_architecture"])
        architecture["options"] = change(architecture["options"])
        state["_architecture"] = architecture
    return state


class HeldAutoencoder(HeldNet):
    """Mixin of the autoencoder: its network from its parameters, rows in and out.

    The parameters are those of :class:`skident.AutoencoderEmbedder`. Rows come checked.
    """

    _continues = True

    def __getstate__(self):
        """Take trained parts of a user's module apart: equal ones then hash equally."""
        return _with_options(
            super().__getstate__(),
            lambda options: take_apart(options) if holds_tensors(options) else options,
        )

    def __setstate__(self, state):
        super().__setstate__(
            _with_options(
                state,
                lambda kept: put_together(*kept) if isinstance(kept, Apart) else kept,
            )
        )

    def _fix_units(self, X):
        """Set units and loss by the rows of a fit, and return their statistics."""
        columns = column_statistics(X)
        if not np.isfinite(columns.scale):
            raise ValueError(
                "X spans more than the largest float64, 1.8e308: bring it to a smaller "
                "scale."
            )
        self.mean_, self.scale_ = columns.mean, columns.scale
        self.loss_ = self.loss
        if self.loss == "auto":
            self.loss_ = "bce" if columns.two_valued else "mse"
        self._check_range(X)
        # what a constant reconstruction leaves: the unit of the penalty
        if self.loss_ == "bce":
            self._unit = cross_entropy_of_means(X, self.mean_) or 1.0
        else:
            self._unit = float(X.shape[1])
        return columns

    def _check_range(self, X):
        if self.loss_ == "bce":
            check_unit_interval(X, getattr(self, "feature_names_in_", None))

    def _new_architecture(self, n_features):
        """Return what the parameters say of the network, checked."""
        shape = self.image_shape
        if shape is not None:
            shape = check_image_shape(shape, n_features)
        # plain numbers: equal ones of numpy are the same network
        options = {"negative_slope": float(self.negative_slope)}
        kind = self.architecture
        if self.module is not None:
            check_module_class(self.module)
            kind, options = self.module, dict(self.module_params or {})
        else:
            check_layer_sizes(self.hidden_layer_sizes)
            options["hidden_layer_sizes"] = tuple(map(int, self.hidden_layer_sizes))
            if kind == "conv":
                check_conv_shape(shape)
                options |= {"image_shape": shape, "n_filters": int(self.n_filters)}
        return {
            "kind": kind,
            "n_features": n_features,
            "n_components": int(self.n_components),
            "options": options,
        }

    def _schedule(self, n_rows):
        return Schedule(
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            max_epochs=resolve_epochs(
                self.max_epochs, n_rows, self.batch_size, n_steps=_N_STEPS
            ),
            patience=self.n_iter_no_change if self.early_stopping else None,
            max_grad_norm=self.max_grad_norm,
            precision=self.precision,
        )

    def _new_net(self, schedule, device):
        # a module of the user's may change in place what it encodes
        mask = None if self.module is None else torch.clone
        if self.mask_ratio:
            shape = None if self.image_shape is None else tuple(self.image_shape)
            mask = RandomMask(self.mask_ratio, shape, self.patch_size)
        objective = Reconstruction(
            ERRORS[self.loss_](torch.from_numpy(self.mean_).float(), self.scale_),
            isometry=self.isometry,
            unit=self._unit,
            mask=mask,
        )
        module = new_module(**self._architecture)
        return build_net(module, objective, schedule, device)

    def _check_module(self, module, rows):
        """Look at a module of the user's before it is trained."""
        if self.module is None:
            return
        some = rows[:16]
        with seeded(0):
            new = new_module(**self._architecture).to(some.device)
            check_new_weights(**self._architecture, rows=some.cpu())
            check_widths(module, some, self._architecture["n_components"])
            new.load_state_dict(module.state_dict())
            check_rebuilt(module, new, some)

    def _check_trained(self, module, rows):
        """Look at a module of the user's again: flags may be set in training."""
        if self.module is None:
            return
        with seeded(0):
            check_rebuilt(module, self._module(), rows[:16])
        self._built = {}

    def _network_rows(self, X):
        device = resolve_device(self.device)
        make = MappedRows if is_mapped(X) else as_tensor
        return make(X, self.mean_, self.scale_, device)

    def _decode(self, z):
        """Map a tensor of latents to rows in network units."""
        return self.net_.criterion_.error.decoded(self._module().decode(z))

    def _jacobians(self, Z):
        """Return the decoder's Jacobians in network units, float32."""
        return self._in_blocks(
            lambda z: batched_jacobian(self._decode, z), Z, self._jacobian_rows()
        )

    def _jacobian_rows(self):
        """Return how many Jacobians make a block."""
        width = self.n_features_in_ * self._architecture["n_components"]
        return max(1, min(1024, _BLOCK_NUMBERS // width))

    def _encoded(self, X):
        n_rows = min(self._block_rows(), X.shape[0])
        rows = np.empty((n_rows, X.shape[1]), dtype=np.float32)
        Z = self._in_blocks(
            self._module().encode,
            X,
            n_rows,
            lambda block: torch.from_numpy(
                in_network_units(block, self.mean_, self.scale_, rows)
            ).to(self.net_.device),
        )
        self._check_overflow(Z, "encoder", "rows of X", "those of the fit")
        return Z

    def _decoded(self, Z):
        rows = self._in_blocks(self._decode, Z, self._block_rows()).astype(np.float64)
        with np.errstate(over="ignore"):
            rows *= self.scale_
            rows += self.mean_
        self._check_overflow(rows, "decoder", "latents", "those of encoded rows")
        return rows

    def _check_overflow(self, output, part, what, known):
        if not np.isfinite(output).all():
            row, column = np.argwhere(~np.isfinite(output))[0]
            raise ValueError(
                f"The {part} returned {output[row, column]} for row {row}, column "
                f"{column}: its numbers are too large there. Compare these {what} with "
                f"{known}."
            )

    def _block_rows(self):
        most = _BLOCK if self.net_.device.type == "cpu" else _BLOCK_ON_CARD
        return max(1, min(most, _BLOCK_NUMBERS // self.n_features_in_))
