"""Stochastic solvers for many constraints, step by step, on equalized odds of two groups.

Everything is written out for logistic scores: batch means, their derivatives, the players. Only the
row numbers and the random numbers come from outside.
"""

import numpy as np


class BatchMeans:
    """Objective, one-sided constraints G <= 0 and their derivatives, as means over some rows.

    Rows of G are rate(second group) - rate(first) - bound for negatives and positives, and then the
    same with the groups exchanged.
    """

    def __init__(self, rows, y, is_second, bound, penalty):
        self.rows, self.y, self.is_second = rows, y, is_second
        self.bound, self.penalty = bound, penalty

    def objective_gradient(self, theta, chosen, weights):
        total = self.penalty * theta
        for i, weight in zip(chosen, weights, strict=True):
            margin = self.y[i] * (self.rows[i] @ theta)
            total = total - weight * self.y[i] / (1 + np.exp(margin)) * self.rows[i]
        return total

    def constraints(self, theta, chosen):
        """Values and Jacobian; a row without any drawn person is NaN."""
        values, gradients = [], []
        for sign in (-1, 1):
            rates, slopes = [], []
            for second in (False, True):
                own = [i for i in chosen if self.y[i] == sign and self.is_second[i] == second]
                shares = [1 / (1 + np.exp(-self.rows[i] @ theta)) for i in own]
                rates.append(np.mean(shares) if own else np.nan)
                parts = [s * (1 - s) * self.rows[i] for s, i in zip(shares, own, strict=True)]
                slopes.append(np.mean(parts, axis=0) if own else np.full(theta.size, np.nan))
            values.append(rates[1] - rates[0])
            gradients.append(slopes[1] - slopes[0])
        values, gradients = np.array(values), np.array(gradients)
        return np.append(values, -values) - self.bound, np.vstack([gradients, -gradients])


def plada(means, theta, batches, *, alpha, beta, gamma0, kappa, tau, u_max, eta, first_values):
    """Algorithm 1: a batch is (rows, weights of the loss, rows of G, rows for lambda)."""
    rho = alpha / (1 + alpha * beta)
    mu = np.zeros(first_values.size)
    u = np.minimum(np.maximum(-first_values, 0), u_max)
    for k, (of_loss, weights, of_cells, other_cells) in enumerate(batches):
        values, _ = means.constraints(theta, other_cells)
        _, jacobian = means.constraints(theta, of_cells)
        lam = mu + rho * (values + u)
        direction = means.objective_gradient(theta, of_loss, weights) + jacobian.T @ lam
        theta = theta - eta * direction
        u = np.minimum(np.maximum(u - tau * lam, 0), u_max)
        delta = kappa / (k + 1)
        gamma = min(gamma0, rho * delta / (np.sum((lam - mu) ** 2) + 1))
        mu = mu + gamma * (lam - mu) / rho
    return theta, lam


def network_output(layers, inputs):
    """The output of a network of (weights, intercepts), with the units of each layer."""
    units = [inputs]
    for k, (weights, intercepts) in enumerate(layers):
        new = np.array([units[-1] @ weights[:, j] for j in range(weights.shape[1])]) + intercepts
        units.append(new if k == len(layers) - 1 else np.where(new > 0, new, 0))
    return units[-1][0], units


def network_gradient(layers, inputs):
    """Derivatives of the absolute output by all weights and intercepts, by the chain rule."""
    output, units = network_output(layers, inputs)
    back, gradients = np.array([1.0 if output > 0 else -1.0]), []
    for k in range(len(layers) - 1, -1, -1):
        gradients.insert(0, (np.outer(units[k], back), back))
        back = layers[k][0] @ back
        if k:
            back = back * (units[k] > 0)
    return gradients


def multiplier_game(means, theta, layers, draws, descriptions, *, rate, dual_scale):
    """The Lagrangian game: each draw is (number of the row of G, loss rows, weights, G rows)."""
    squares = np.full(theta.size, 0.1)
    net_squares = [(np.full(w.shape, 0.1), np.full(b.shape, 0.1)) for w, b in layers]
    for row, of_loss, weights, of_cells in draws:
        output, _ = network_output(layers, descriptions[row])
        slopes = network_gradient(layers, descriptions[row])
        values, jacobian = means.constraints(theta, of_cells)
        direction = means.objective_gradient(theta, of_loss, weights)
        direction = direction + abs(output) * jacobian[row]
        squares = squares + direction**2
        theta = theta - rate * direction / np.sqrt(squares)
        for k, gradient in enumerate(slopes):
            moved = []
            for part, slope, square in zip(layers[k], gradient, net_squares[k], strict=True):
                up = -dual_scale * values[row] * slope
                square += up**2
                moved.append(part - rate * up / np.sqrt(square))
            layers[k] = tuple(moved)
    return theta, layers
