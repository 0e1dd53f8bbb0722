"""The words of docstrings: sentences with a subject and a verb, as STYLE asks for.

The rules know no grammar. They know the verbs of this package, so a sentence with a verb that is
missing here is reported by mistake: add the verb to ``VERBS``.
"""

import ast
import inspect
import re
from pathlib import Path

# Sections that consist of entries, one for each name.
LISTS = {"Parameters", "Attributes", "Returns", "Yields", "Raises", "Other Parameters"}
# Sections without prose.
CODE = {"Examples", "References", "See Also"}

_AUXILIARIES = """
am is are was were be been has have had do does did can cannot may might must shall should will
would could isn't aren't doesn't don't can't
"""
# Verbs of this package. Their forms are derived.
_VERBS = """
accept add affect agree aim allow amount appear apply ask assign assume average avoid become begin
behave belong bind bring build buy calculate call change choose come compare compute concern consist
contain continue converge correspond cost count cover create decide decrease define delete depend
describe determine differ disagree diverge divide draw drop earn enable enforce equal estimate
evaluate exceed exclude exist expect explain fall fill find finish fit fix follow forbid forget form
get give go grow guarantee happen help hold identify ignore implement imply improve include increase
inherit interact interpret join keep know lack lead learn leave lie limit list look lose make match
matter maximise mean measure merge minimise miss move multiply need obtain occur omit oscillate pass
pay permit pool precede predict prefer print produce prove provide raise rank reach read receive
recommend reduce refer refit refuse reject remain remove repeat replace report represent require
resemble result return round run satisfy say see seem select sell send separate serve set share show
simulate slow solve sort specify stand start stay stem stop store suffice sum suppress take tell
tend test train treat try turn understand use validate vary violate visit want warn weight work
write yield
"""
# Forms that are mostly nouns, so alone they do not prove that there is a verb.
_NOUNS = """
amount amounts average averages bound bounds call calls change changes cost costs count counts cut
cuts draw draws equals estimate estimates fall falls fit fits fix form forms guarantee guarantees
help increase increases lack lead leads limit limits list lists look looks matter matters mean means
measure measures move moves need needs pass passes pool pools print prints rank ranks report reports
result results round rounds run runs set sets share shares show shows start starts stop stops sum
sums test tests train trains try turn turns use uses weight weights work works yield
"""
AUXILIARIES, VERBS, NOUNS = (set(words.split()) for words in (_AUXILIARIES, _VERBS, _NOUNS))
_EITHER = "|".join(sorted(NOUNS))
# A noun that is a verb too is one behind a pronoun or a name in quotes, and before an article.
VERB_IN_CONTEXT = re.compile(
    rf"\b(?:it|they|that|which|who|this|each|X|and|or|not|also|then|always|never|only|to|you|we)"
    rf" (?:{_EITHER})\b|\b(?:{_EITHER}) (?:(?:the|a|an|one|no|as|at|from|over|it|its|their|this"
    r"|that|all|both|every|each|more|less|twice|X)\b|\d)|\bmean (?:stronger|larger|smaller)\b",
    re.IGNORECASE,
)


def _third(verb):
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if re.search("[^aeiou]y$", verb) else verb + "s"


FINITE = AUXILIARIES | ((VERBS | {_third(verb) for verb in VERBS}) - NOUNS)

# Words that STYLE gives up, each with the advice to whoever wrote them.
GIVEN_UP = {
    r"(?:^|[.;:] )None\b(?! of)": "None as the subject: write 'If None, ...'",
    r"(?<!be )(?<!is )\bNone (?:is|are|for|takes|draws|finds|gives|means|leaves|keeps|uses)\b": (
        "None as the subject: write 'If None, ...'"
    ),
    r"\b[Hh]ow (?:sure|likely)\b": "'How sure': write 'confidence level' or 'probability'",
    r"(?:^|[.;:] )Of (?:the |all |an? )?\w+(?: \w+){0,4}(?:, | the )": (
        "a sentence that begins with 'Of X,'"
    ),
    r"; (?:of|for) \w+(?: \w+)?, ": "'; of several, ...': write a sentence",
    r"\b(?:ours|theirs)\b": "'ours' and 'theirs': name them",
    r"\bfor (?:itself|themselves)\b": "'for itself': write 'separately'",
    r"\b(?:as before|from when|alike|besides)\b": "borrowed word order",
    r"\b(?:people|rows?|persons?) (?:is|are|(?:may|can|must) be) (?:\w+ )?decided\b": (
        "people and rows are not decided"
    ),
    r"\bare selected in\b": "'are selected in': write 'selection rate'",
    r"\bchance explains\b": "write 'statistically significant'",
    r"\bat most a share of\b": "'a share that misleads': write 'error probability'",
    r"\bin either direction by\b": "write 'above or below'",
    r"\bby models that have not seen\b": "write 'out-of-fold'",
    r"^Whether a new group raises|; if not, it\b": "write a sentence for each case",
    r"^Their \w+(?:;|$)": "'Their objective': name what has it",
}
# The most that 1,000 words may hold. In scikit-learn's they are 1.1, 0.1 and 0.
RATES = {
    "semicolons": (";", 3.0),
    "'that of'": (r"\b(?:that|those) of\b", 0.5),
    "'What ...'": (r"(?:^|[.,;:(] )[Ww]hat\b(?! to\b)", 0.5),
}


def sections(doc):
    """Return the sections of a numpydoc docstring by their titles; the first has no title."""
    parts = re.split(r"^(\S.*)\n-{3,}\n", doc, flags=re.M)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def plain(text):
    """Return prose without code, formulas, roles and strings in quotes."""
    text = re.sub(r"^( *)\.\. \w+::.*(?:\n\1 +\S.*|\n(?=\n\1 +\S))*", "", text, flags=re.M)
    text = re.sub(r"^ *(?:>>>|\.\.\.) .*(?:\n(?!\n).*)*", "", text, flags=re.M)
    return re.sub(r":\w+(?::\w+)?:`[^`]*`|``[^`]*``|`[^`]*`|\"[^\"]*\"", "X", text)


def entries(doc):
    """Yield (section, head, text) of each entry of a docstring."""
    for section, body in sections(doc).items():
        if section not in LISTS:
            continue
        for entry in filter(None, re.split(r"\n(?=\S)", body.strip("\n"))):
            head, _, text = entry.partition("\n")
            yield section, head, inspect.cleandoc(text)


def sentences(text):
    """Return the sentences of prose; an item of a list is a paragraph of its own."""
    parts = re.split(r"\n *\n|\n *(?=[-*] )", plain(text))
    joined = [" ".join(part.split()).removeprefix("- ").removeprefix("* ") for part in parts]
    split = [re.split(r"(?<=[^.]\.) (?=[A-Z(0-9])", part) for part in joined]
    return [[whole.strip(" .") for whole in part if whole.strip(" .")] for part in split]


def has_verb(sentence):
    """Whether there is a verb in a sentence, as far as a list of verbs can tell."""
    words = re.findall(r"[A-Za-z']+", sentence)
    lower = {word.lower() for word in words[1:]} | set(words[:1])
    orders = {verb.capitalize() for verb in VERBS}
    return bool(
        lower & FINITE
        or {word.lower() for word in words[:1]} & AUXILIARIES
        or (words and words[0] in orders)
        or VERB_IN_CONTEXT.search(sentence)
    )


def entry_breaches(doc):
    """List entries of a docstring that are no sentences."""
    breaches = []
    for section, head, text in entries(doc):
        names = head.split(" :")[0]
        if section in ("Parameters", "Attributes") and ", " in names:
            breaches.append(f"{names}: several names in one entry")
        if section in ("Parameters", "Attributes") and not text:
            breaches.append(f"{names}: no description")
        for paragraph in sentences(text):
            for place, sentence in enumerate(paragraph):
                parts = re.split("; ", sentence)
                if len(parts) > 2 or (len(parts) > 1 and not all(map(has_verb, parts))):
                    breaches.append(f"{names}: a chain joined by semicolons: {sentence!r}")
                elif place and not has_verb(sentence):
                    breaches.append(f"{names}: no verb: {sentence!r}")
    return breaches


def prose(doc):
    """Yield the paragraphs of a docstring: of entries, and of its sections without code."""
    for section, body in sections(doc).items():
        if section in LISTS:
            yield from (text for _, _, text in entries(section and f"{section}\n---\n{body}"))
        elif section not in CODE:
            yield from re.split(r"\n *\n", plain(body))


def habit_breaches(doc):
    """List words of a docstring that STYLE gives up."""
    breaches = []
    for text in prose(doc):
        line = " ".join(plain(text).split())
        for pattern, advice in GIVEN_UP.items():
            if match := re.search(pattern, line):
                breaches.append(f"{match[0].strip()!r} in {line[:70]!r}: {advice}")
    return breaches


def rates(docs):
    """Return how often each habit is in 1,000 words of docstrings; what they share counts once."""
    texts = dict.fromkeys(" ".join(plain(text).split()) for doc in docs for text in prose(doc))
    n_words = sum(len(text.split()) for text in texts)
    return {
        habit: 1000 * sum(len(re.findall(pattern, text)) for text in texts) / max(n_words, 1)
        for habit, (pattern, _) in RATES.items()
    }


def formula_breaches(doc):
    """List docstrings whose formula comes before an account in words."""
    before, formula, _ = sections(doc)[""].partition(".. math::")
    if not formula:
        return []
    told = [sentence for part in sentences(before)[1:] for sentence in part if has_verb(sentence)]
    return [] if told else ["a formula comes before an account in words"]


def docstrings(thing):
    """Yield (name, docstring) of an object and of its public methods."""
    yield "", inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        for name, member in inspect.getmembers(thing, callable):
            module = getattr(member, "__module__", None) or ""  # methods of C have none
            if name.startswith("_") or not module.startswith("skfair"):
                continue
            yield f".{name}", inspect.getdoc(member) or ""


def module_docstrings(folder):
    """Return the docstring of each file below a folder, by its path there."""
    docs = {}
    for path in sorted(Path(folder).rglob("*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if doc:
            docs[str(path.relative_to(folder))] = doc
    return docs
