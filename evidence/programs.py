"""Run programs that use spaCy pipelines on `en_elmo_web`, as their own READMEs start them.

    python -m pip install presidio-analyzer keybert bertopic textacy pytextrank scattertext negspacy fastapi httpx six
    python evidence/programs.py [en_elmo_web]

Each function prints what the program finds. A program that is not installed is skipped.
"""

import sys
from collections.abc import Callable
from itertools import product

import spacy
from spacy.language import Language

TEXT = (
    "Angela Merkel met Tim Cook in Berlin on Monday. The chancellor praised the new office of Apple."
    " The company will hire three hundred engineers. Its competitors build chips for phones in Dresden."
)
# A subject, a verb and an object.
TRIPLES = {
    "The cat chased the mouse.": ("cat", "chased", "mouse"),
    "Anna wrote a long letter.": ("Anna", "wrote", "letter"),
    "The committee has rejected the plan.": ("committee", "rejected", "plan"),
    "Students read old books in the library.": ("Students", "read", "books"),
    "The storm destroyed three houses.": ("storm", "destroyed", "houses"),
    "My neighbour sold his car yesterday.": ("neighbour", "sold", "car"),
}


def presidio(path: str) -> str:
    """Names of persons and places that presidio would anonymize."""
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    models = [{"lang_code": "en", "model_name": path}]
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
    analyzer = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])
    found = analyzer.analyze(text=TEXT, language="en")
    return str(sorted({(result.entity_type, TEXT[result.start : result.end]) for result in found}))


def keybert(nlp: Language) -> str:
    """Keywords of a text by the similarity of vectors."""
    from keybert import KeyBERT

    return str(KeyBERT(model=nlp).extract_keywords(TEXT, top_n=4))


def bertopic(nlp: Language) -> str:
    """Topics of short texts, with PCA and k-means."""
    from bertopic import BERTopic
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    animals = [
        f"The {animal} ate some {food} in the garden."
        for animal, food in product(("cat", "dog", "horse", "cow"), ("grass", "meat", "bread"))
    ]
    markets = [
        f"The {seller} sold {goods} on the market."
        for seller, goods in product(
            ("bank", "fund", "broker", "firm"), ("shares", "bonds", "gold")
        )
    ]
    model = BERTopic(
        embedding_model=nlp, umap_model=PCA(n_components=5), hdbscan_model=KMeans(2, random_state=0, n_init=10)
    )  # fmt: skip
    topics, _ = model.fit_transform(animals + markets)
    return f"topics of 12 sentences on animals, and of 12 on markets: {topics[:12]}, {topics[12:]}"


def textacy(nlp: Language) -> str:
    """Triples of subject, verb and object. textacy asks for labels of ClearNLP."""
    from textacy.extract import subject_verb_object_triples

    right = 0
    for text, expected in TRIPLES.items():
        triples = subject_verb_object_triples(nlp(text))
        heads = {tuple(str(part[-1]) for part in triple) for triple in triples}
        right += expected in heads
    return f"{right} of {len(TRIPLES)} triples"


def pytextrank(nlp: Language) -> str:
    """Important phrases, which are ranked noun chunks."""
    import pytextrank  # noqa: F401

    nlp.add_pipe("textrank")
    return str([phrase.text for phrase in nlp(TEXT)._.phrases[:5]])


def scattertext(nlp: Language) -> str:
    """Words of a corpus, in which names of persons are censored."""
    import pandas
    from scattertext import CorpusFromParsedDocuments
    from scattertext.features.FeatsFromSpacyDoc import FeatsFromSpacyDoc

    table = pandas.DataFrame({"text": [nlp(TEXT), nlp("The market fell.")], "kind": ["a", "b"]})
    features = FeatsFromSpacyDoc(entity_types_to_censor={"PERSON"})
    corpus = CorpusFromParsedDocuments(
        table, category_col="kind", parsed_col="text", feats_from_spacy_doc=features
    ).build()
    words = corpus.get_terms()
    return f"a name is left: {'merkel' in words}"


def negspacy(nlp: Language) -> str:
    """Names that a sentence negates."""
    import negspacy.negation  # noqa: F401

    nlp.add_pipe("negex", config={"ent_types": ["PERSON", "ORG"]})
    doc = nlp("She does not like Steve Jobs but likes Apple products.")
    return str([(ent.text, ent._.negex) for ent in doc.ents])


def fastapi(nlp: Language) -> str:
    """A web service that returns names."""
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    app = FastAPI()

    @app.post("/names")
    def names(text: str) -> list[tuple[str, str]]:
        return [(ent.text, ent.label_) for ent in nlp(text).ents]

    return str(TestClient(app).post("/names", params={"text": TEXT}).json())


PROGRAMS: dict[str, Callable[[Language], str]] = {
    "KeyBERT": keybert, "BERTopic": bertopic, "textacy": textacy, "pytextrank": pytextrank,
    "scattertext": scattertext, "negspacy": negspacy, "FastAPI": fastapi,
}  # fmt: skip


def main() -> None:
    """Print a line for each program."""
    path = sys.argv[1] if len(sys.argv) > 1 else "en_elmo_web"
    settings = {"components.conventions.labels": "spacy"}
    try:
        print("presidio:", presidio(path))
    except ImportError as error:
        print("presidio: not installed:", error)
    for name, run in PROGRAMS.items():
        try:
            print(f"{name}:", run(spacy.load(path, config=settings)))
        except ImportError as error:
            print(f"{name}: not installed:", error)


if __name__ == "__main__":
    main()
