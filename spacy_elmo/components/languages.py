"""Languages that spaCy does not know, so that `spacy.blank("cy")` works and a packaged pipeline has the code of its
language. spaCy finds them by entry points. Words are those of a trained tokenizer, or of spaCy's general rules."""

from spacy.language import BaseDefaults, Language


class RightToLeftDefaults(BaseDefaults):
    """The Arabic and the Hebrew script."""

    writing_system = {"direction": "rtl", "has_case": False, "has_letters": True}


class Maltese(Language):
    lang = "mt"


class NorthernSami(Language):
    lang = "se"


class Uyghur(Language):
    lang = "ug"
    Defaults = RightToLeftDefaults


class Welsh(Language):
    lang = "cy"


class Wolof(Language):
    lang = "wo"


class Yiddish(Language):
    lang = "yi"
    Defaults = RightToLeftDefaults
