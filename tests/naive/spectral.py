"""Slow twins of fair spectral clustering: null-space bases, full spectra and double loops.

``attributes`` is a list of code vectors, one per sensitive attribute; the groups of different
attributes overlap. Rows without edges are left out, and their rows of H are zero.
"""

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize

from tests.naive import normalized_cut as normalised_cut  # noqa: F401


def connected(W):
    """The rows that have an edge."""
    return np.array([i for i in range(len(W)) if sum(W[i]) > 0])


def normalised_weights(W):
    """D^-1/2 W D^-1/2 of rows that all have edges."""
    W = np.asarray(W, np.float64)
    degrees = np.array([sum(row) for row in W])
    return W / np.sqrt(np.outer(degrees, degrees))


def constraints(W, attributes):
    """F = D^-1/2 (G - 1 z'), one column per group, of rows that all have edges."""
    columns = []
    for codes in attributes:
        for level in sorted(set(codes)):
            member = np.array([1.0 if code == level else 0.0 for code in codes])
            columns.append((member - member.mean()) / np.sqrt(np.asarray(W, float).sum(axis=1)))
    return np.array(columns).T


def fair_spectrum(W, attributes, shift=None):
    """All eigenvalues, falling, and eigenvectors of M inside the null space of F'.

    With a shift: of ``(M + shift)^2`` inside the null space of ``F'(M + shift)``, the problem that
    Algorithm 1 of fair_spectral_dc solves when it converges.
    """
    rows = connected(W)
    W = np.asarray(W)[np.ix_(rows, rows)]
    M, F = normalised_weights(W), constraints(W, [np.asarray(a)[rows] for a in attributes])
    if shift is not None:
        M = M + shift * np.eye(len(M))
        F = M @ F
        M = M @ M
    Z = null_space(F.T, rcond=1e-10)
    values, vectors = np.linalg.eigh(Z.T @ M @ Z)
    H = np.zeros((len(attributes[0]), len(values)))
    H[rows] = Z @ vectors[:, ::-1]
    return values[::-1], H


def constraint_residual(W, attributes, H):
    """The largest entry of F'H."""
    rows = connected(W)
    F = constraints(np.asarray(W)[np.ix_(rows, rows)], [np.asarray(a)[rows] for a in attributes])
    return np.abs(F.T @ H[rows]).max()


def relaxed_cost(W, H):
    """k - Tr(H' M H), entry by entry."""
    rows = connected(W)
    M = normalised_weights(np.asarray(W)[np.ix_(rows, rows)])
    return sum(1 - h @ M @ h for h in H[rows].T)


def indicators(W, labels):
    """The H of a clustering: D^1/2 times the membership, columns of length 1."""
    degrees = np.asarray(W, float).sum(axis=1)
    levels = sorted(set(labels))
    H = np.array([np.sqrt(degrees) * (np.asarray(labels) == level) for level in levels]).T
    return H / np.linalg.norm(H, axis=0)


def polar(U):
    """The closest matrix with orthonormal columns, and the nuclear norm of U."""
    left, lengths, right = np.linalg.svd(U, full_matrices=False)
    return left @ right, lengths.sum()


def dual_value(M, V, Y, P, alpha):
    """The objective of (14), with phi* as Proposition 3.3 of fair_spectral_dc writes it."""
    A = (V + P - alpha * Y) / (1 - alpha)
    conjugate = (
        np.sum(V**2) / 2
        - np.sum((A - V) ** 2) / 2
        + alpha / 2 * np.sum((A - Y) ** 2)
        + np.sum(P * A)
    )
    return conjugate - polar(M @ V)[1]


def dc_admm(W, attributes, k, shift, V, n_iter, gtol, ftol):
    """Algorithm 1 of fair_spectral_dc line by line, for rows that all have edges."""
    M = normalised_weights(W) + shift * np.eye(len(W))
    F = constraints(W, attributes)
    Q = null_space(F.T, rcond=1e-10)
    Y = P = np.zeros((len(W), k))
    alpha, log = 0.005, []
    for _ in range(n_iter):

        def dual(v, Y=Y, P=P, alpha=alpha):
            V = v.reshape(Y.shape)
            gradient = (V + P - alpha * Y) / (1 - alpha) - M @ polar(M @ V)[0]
            return dual_value(M, V, Y, P, alpha), gradient.ravel()

        options = {"gtol": gtol, "ftol": ftol}
        V = minimize(dual, V.ravel(), jac=True, method="L-BFGS-B", options=options).x
        V = V.reshape(Y.shape)
        H = polar(M @ V)[0]
        Z = Q.T @ M @ H + Q.T @ P / alpha
        before, Y = Y, Q @ Z
        P = P + alpha * (M @ H - Y)
        R, S = np.linalg.norm(M @ H - Y), alpha * np.linalg.norm(Y - before)
        log.append((np.trace(H.T @ normalised_weights(W) @ H), R, S, alpha))
        if R > 10 * S:
            alpha = min(2 * alpha, 0.95)
        elif S > 10 * R:
            alpha /= 2
    return H, np.array(log)


def group_surplus(groups):
    """Members of each group minus the group's share, one column per group."""
    return np.array([(groups == g) - np.mean(groups == g) for g in sorted(set(groups))]).T


def ffsc_objective(W, groups, labels, k, weight):
    """Cut plus weighted surplus of groups over the volume, by the indicators of the clusters."""
    L, F = np.diag(W.sum(axis=1)) - W, group_surplus(groups)
    total = 0.0
    for c in range(k):
        y = (labels == c).astype(float)
        total += (y @ L @ y + weight * np.sum((F.T @ y) ** 2)) / (y @ W.sum(axis=1))
    return total


def ffsc(W, groups, k, weight, rng, max_iter=100):
    """Coordinate descent that computes the whole objective for every move that it considers."""
    n = len(W)
    labels = np.zeros(n, int)
    labels[rng.permutation(n)] = np.arange(n) % k
    path = []
    for _ in range(max_iter):
        n_moved = 0
        for i in rng.permutation(n):
            values = []
            for c in range(k):
                moved = labels.copy()
                moved[i] = c
                values.append(ffsc_objective(W, groups, moved, k, weight))
            c = int(np.argmin(values))
            if values[c] < values[labels[i]] - 1e-10 and np.sum(labels == labels[i]) > 1:
                labels[i] = c
                n_moved += 1
        path.append(ffsc_objective(W, groups, labels, k, weight))
        if n_moved == 0:
            break
    return labels, path


def ufsc(W, groups, labels, alpha, beta, mu, gamma, n_rounds):
    """UFSC with full matrices, a null-space basis Z and U = Z Y, from the labels of its start.

    Yields the graph that was learned, U and the labels of each round.
    """
    n, k = len(W), max(labels) + 1
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if W[i, j] > 0]
    off_diagonal = W - np.diag(np.diag(W))
    distances = 1 - off_diagonal / off_diagonal.max()
    S = np.zeros((n, len(edges)))
    for e, (i, j) in enumerate(edges):
        S[i, e] = S[j, e] = 1
    Z = null_space(group_surplus(groups).T, rcond=1e-10)
    Lipschitz = (S > 0).sum(axis=1).max() / beta
    dual = np.zeros(n)

    def learn(z, dual):
        t, last, ahead, w = 1.0, dual, dual, np.zeros(len(edges))
        for _ in range(1000):
            before, w = w, np.maximum((S.T @ ahead - 2 * z) / (2 * beta), 0)
            x = S @ w - Lipschitz * ahead
            new = ahead - (S @ w - (x + np.sqrt(x**2 + 4 * alpha * Lipschitz)) / 2) / Lipschitz
            t, t_before = (1 + np.sqrt(1 + 4 * t**2)) / 2, t
            ahead, last = new + (t_before - 1) / t * (new - last), new
            if np.linalg.norm(w - before) < 1e-4 * np.linalg.norm(before):
                break
        return np.where(w < 1e-4, 0, w), last

    def laplacian(w):
        A = np.zeros((n, n))
        for (i, j), weight in zip(edges, w, strict=True):
            A[i, j] = A[j, i] = weight
        return np.diag(A.sum(axis=1)) - A

    w, dual = learn(np.array([distances[edge] for edge in edges]), dual)
    Y = np.linalg.eigh(Z.T @ laplacian(w) @ Z)[1][:, :k]
    Q = np.eye(k)[labels]
    A, _, B = np.linalg.svd(Q.T @ Z @ Y)
    R = (A @ B).T
    for _ in range(n_rounds):
        U = Z @ Y
        z = [distances[i, j] + mu / 2 * np.sum((U[i] - U[j]) ** 2) for i, j in edges]
        w, dual = learn(np.array(z), dual)
        L = laplacian(w)
        s = 2 * np.diag(L).max()
        for _ in range(10):
            Y = polar(mu * Z.T @ ((s * np.eye(n) - L) @ Z @ Y) + gamma * Z.T @ Q @ R.T)[0]
        A, _, B = np.linalg.svd(Q.T @ Z @ Y)
        R = (A @ B).T
        labels = np.argmax(Z @ Y @ R, axis=1)
        Q = np.eye(k)[labels]
        yield w, Z @ Y, labels
