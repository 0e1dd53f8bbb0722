"""Draw the picture of the front page: the rates before and after that its sample prints."""

from sklearn.ensemble import HistGradientBoostingClassifier

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.inspection._style import PALETTE

LEFT, FIRST, SCALE = 30, 18, 20  # pixels before the first share, and of a percentage point
LOOKS = {"female": ("women", PALETTE[0], "end", 7), "male": ("men", PALETTE[1], "start", -7)}
PICTURE = """<svg class="hero" viewBox="0 0 560 340" role="img" aria-label="{alt}">
<g class="soft">{ticks}</g>
<text x="{left}" y="34"><tspan class="strong">The model:</tspan> a gap of {old_gap}</text>
{before}
<text x="{left}" y="166"><tspan class="strong">With a limit of 5:</tspan> a gap of {new_gap}</text>
{after}
<text class="soft" x="{left}" y="334">loans granted on unseen data</text>
</svg>
"""


def rates():
    """Return the share of women and men who get a loan, before and after."""
    (X, y, people), (X_new, _, people_new) = (
        make_loans(8000, bias=2.0, random_state=seed) for seed in (0, 1)
    )
    X, X_new = X.select_dtypes("number"), X_new.select_dtypes("number")
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(X, y)
    fair = FairDecisionClassifier(
        model, max_disparity=0.05, certificate=0.95, group_aware=True, random_state=0
    ).fit(X, y, sensitive_features=people["sex"])
    sex = people_new["sex"]
    decisions = model.predict(X_new), fair.predict(X_new, sensitive_features=sex)
    return [
        {group: 100 * labels[(sex == group).to_numpy()].mean() for group in LOOKS}
        for labels in decisions
    ]


def picture():
    """Return the picture as SVG in the colours of the page; its lower dots come from above."""
    before, after = rates()
    old_gap, new_gap = (row["male"] - row["female"] for row in (before, after))
    rows = {"before": dots(before, 78), "after": dots(after, 216, before)}
    ticks = f'<path d="M{LEFT} 288H{place(42)}"/>' + "".join(
        f'<path d="M{place(share)} 288v-8"/>'
        f'<text x="{place(share)}" y="310" text-anchor="middle">{share}%</text>'
        for share in range(20, 41, 5)
    )
    alt = (
        f"The model grants loans to {before['female']:.0f}% of the women and "
        f"{before['male']:.0f}% of the men; within a limit of 5 points these are "
        f"{after['female']:.0f}% and {after['male']:.0f}%."
    )
    gaps = {"old_gap": f"{old_gap:.0f} points", "new_gap": f"{new_gap:.1f} points"}
    return PICTURE.format(alt=alt, ticks=ticks, left=LEFT, **rows, **gaps)


def place(share):
    """Return where a share lies from left to right."""
    return round(LEFT + SCALE * (share - FIRST), 1)


def dots(shares, y, old=None):
    """Return the dots of women and men, which move from their old places if there are any."""
    women, men = place(shares["female"]), place(shares["male"])
    parts = [f'<path class="way" d="M{women} {y}H{men}"/>']
    for group, (name, colour, anchor, aside) in LOOKS.items():
        x = place(shares[group])
        move = ""
        if old:
            start = place(old[group])
            parts.append(f'<path class="trace" d="M{start} {y}H{x}"/>')
            parts.append(f'<circle class="ghost" cx="{start}" cy="{y}" r="11"/>')
            move = f' class="moves" style="--from: {start - x:.1f}px"'
        parts.append(f'<circle{move} cx="{x}" cy="{y}" r="13" fill="{colour}"/>')
        label = f"{name} {shares[group]:.0f}%"
        parts.append(
            f'<text x="{x + aside:.1f}" y="{y + 40}" text-anchor="{anchor}">{label}</text>'
        )
    return "\n".join(parts)
