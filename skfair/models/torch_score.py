"""Modules of PyTorch as score models, which users pass as ``model=``.

:class:`TorchScore` has the methods of :class:`skfair.models.plug_in.ScoreFunction`. PyTorch (extra
``torch``) is imported inside its methods, so that this file can be imported without it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray

if TYPE_CHECKING:
    import torch


class TorchScore:
    """Score model that wraps a PyTorch module, for ``model=`` of estimators.

    Parameters
    ----------
    module : torch.nn.Module
        The module, which returns one score for each row. Its input has shape (n_rows, n_features)
        and the type of its parameters, and its output has shape (n_rows,) or (n_rows, 1). The
        module is copied and used in evaluation mode, so dropout is off and batch norms keep their
        statistics.
    start : {"random", "module"}, default="random"
        Parameters from which a fit starts. "random" lets the layers draw new parameters, with the
        seed of the estimator, and "module" starts from the parameters of the module.
    device : str, default="cpu"
        Device on which the module is evaluated.

    Attributes
    ----------
    module : torch.nn.Module
        The copy of the module. Fits do not change its parameters (see :meth:`module_with`).
    n_parameters : int
        Total number of parameters that need gradients.

    See Also
    --------
    skfair.models.check_score_model : Check whether a score model meets all requirements.

    Notes
    -----
    Parameters that need no gradient (``requires_grad_(False)``) are not changed, which allows
    fine-tuning. Use ``module.double()`` if limits are strict and close: with single precision,
    thresholds keep a distance from the scores that covers rounding errors.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.models import TorchScore
    >>> module = torch.nn.Sequential(
    ...     torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    ... )  # doctest: +SKIP
    >>> model = ConstrainedERMClassifier(model=TorchScore(module))  # doctest: +SKIP
    >>> model.fit(X, y, sensitive_features=sex)  # doctest: +SKIP
    >>> model.model_.state_dict(model.parameters_)  # doctest: +SKIP
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        start: Literal["random", "module"] = "random",
        device: str = "cpu",
    ) -> None:
        if start not in ("random", "module"):
            raise ValueError(f"start must be 'random' or 'module', got {start!r}.")
        self.module = deepcopy(module).to(device).eval()
        self.starts_from, self.device = start, device
        kept = {
            name: parameter
            for name, parameter in self.module.named_parameters()
            if parameter.requires_grad
        }
        if not kept:
            raise ValueError("The module has no parameters that need gradients.")
        self._names = list(kept)
        self._shapes = [parameter.shape for parameter in kept.values()]
        self._sizes = [parameter.numel() for parameter in kept.values()]
        self._dtype = next(iter(kept.values())).dtype
        self.n_parameters = sum(self._sizes)

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return parameters to start from.

        Parameters
        ----------
        rng : RandomState
            Source of random numbers that seeds PyTorch. The global generator of PyTorch is not
            changed.

        Returns
        -------
        theta : ndarray of shape (n_parameters,)
            The parameters of all tensors, one tensor after the other.
        """
        import torch

        if self.starts_from == "module":
            return self._flat(self.module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            drawn = deepcopy(self.module)
            for part in drawn.modules():
                # PyTorch's layers with parameters have this method.
                draw = getattr(part, "reset_parameters", None)
                if draw is not None:
                    draw()
        return self._flat(drawn)

    def forward(self, theta: FloatArray, X: NDArray[Any]) -> tuple[NDArray[Any], Any]:
        """Return the scores of rows, and a tape for :meth:`pullback`.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            The parameters.
        X : ndarray of shape (n_rows, n_features)
            The rows, as a dense array.

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            The scores in the precision of the module.
        tape : object
            The tape, which :meth:`pullback` needs.
        """
        import torch

        if not isinstance(X, np.ndarray):
            raise TypeError("TorchScore needs dense rows, got a sparse matrix. Use X.toarray().")
        leaves = self._tensors(theta, needs_gradient=True)
        rows = torch.from_numpy(np.ascontiguousarray(X)).to(self.device, self._dtype)
        parameters = dict(zip(self._names, leaves, strict=True))
        scores = torch.func.functional_call(self.module, parameters, (rows,))
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        return scores.detach().cpu().numpy(), (scores, leaves)

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``.

        Parameters
        ----------
        tape : object
            The tape of a forward pass.
        slopes : ndarray of shape (n_rows,)
            Derivatives of the function with respect to the scores.

        Returns
        -------
        gradient : ndarray of shape (n_parameters,)
            Derivatives of the function with respect to the parameters.
        """
        import torch

        pulled = torch.from_numpy(np.ascontiguousarray(slopes)).to(self.device, self._dtype)
        parts = torch.autograd.grad(*tape, pulled, retain_graph=True, materialize_grads=True)
        return np.concatenate([part.cpu().numpy().ravel() for part in parts]).astype(np.float64)

    def state_dict(self, theta: FloatArray) -> dict[str, torch.Tensor]:
        """Return parameters as a state dict of the module.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            The parameters, for example ``parameters_`` of a fitted estimator.

        Returns
        -------
        state : dict of str to tensor
            State that can be passed to ``load_state_dict`` of a module of the same architecture.
        """
        tensors = self._tensors(theta, needs_gradient=False)
        state = {name: value.clone() for name, value in self.module.state_dict().items()}
        return state | dict(zip(self._names, tensors, strict=True))

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Set the parameters from a state dict, so that fits start from them.

        Parameters
        ----------
        state : dict of str to tensor
            State of a module of the same architecture.
        """
        self.module.load_state_dict(state)
        self.starts_from = "module"

    def module_with(self, theta: FloatArray) -> torch.nn.Module:
        """Return a copy of the module with other parameters.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            The parameters, for example ``parameters_`` of a fitted estimator.

        Returns
        -------
        module : torch.nn.Module
            The copy, in evaluation mode.
        """
        module = deepcopy(self.module)
        module.load_state_dict(self.state_dict(theta))
        return module

    def _tensors(self, theta: FloatArray, *, needs_gradient: bool) -> list[torch.Tensor]:
        """Return the parameters of a flat vector as tensors, in the order of ``_names``."""
        import torch

        flat = torch.tensor(theta, dtype=self._dtype, device=self.device)
        parts = [
            part.view(shape)
            for part, shape in zip(flat.split(self._sizes), self._shapes, strict=True)
        ]
        return [part.requires_grad_() for part in parts] if needs_gradient else parts

    def _flat(self, module: torch.nn.Module) -> FloatArray:
        """Return the parameters of a module as a flat vector, in the order of ``_names``."""
        parameters = dict(module.named_parameters())
        parts = [parameters[name].detach().cpu().numpy().ravel() for name in self._names]
        return np.concatenate(parts).astype(np.float64)
