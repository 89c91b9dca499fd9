"""Recognize direct identifiers by the name and the values of a column: names, keys, numbers of people, addresses, free
text. Each rule returns a reason or nothing; a new rule is one more function in RULES. Values are never quoted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from anon.profile.columns import LONG, NUMBERS, ColumnProfile
from anon.source.column_words import (
    AGES,
    AMOUNTS,
    KEYS,
    PLACES,
    may_name_people,
    names_a_role,
    names_people,
    names_sensitive,
    numbers_records,
    points_at_people,
    words,
)

NEARLY = 0.95  # distinct values per row with a value from which on a column is a key
ENOUGH_ROWS = 100  # with fewer, numbers may all differ by chance
ENOUGH_TEXTS = 20  # with fewer, texts may
FEW = 20  # distinct values of a code or a category
MANY_NAMES = 64  # distinct values; usually only names and the like have more
MANY_WORDS = 1_000  # distinct values of text that is not a code
RARE = 0.1  # of the rows: if more are unique by a text, it identifies them
SHARE = 0.05  # of the rows: text with more distinct values may be names
MOST = 0.8  # of the values that are examined
SOME = 0.3
DIGITS = 7  # of a number that is written for one person
WORDY = 5  # words of a sentence
FEW_NAMES = 5  # distinct values
PAIRS = 12  # of words; with fewer, first and second words may combine by chance

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")
IBAN = re.compile(r"[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}")
NUMBER = re.compile(r"[+(]?[A-Za-z]{0,6}[A-Za-z0-9 ()/.\-]*")
STREET = re.compile(
    r"(?i)(stra(ß|ss)e|str\.?|street|st\.?|road|rd\.?|avenue|ave\.?|lane|drive|weg|platz|allee|gasse|rue|chemin|boulevard"
    r"|viale?|piazza|corso|calle|avenida|plaza|rua|ulica|ul\.|aleja|straat|laan|plein)(\W|$)"
)
CAPITALISED = re.compile(r"(?:[^\W\d_a-z]\.|[^\W\d_]['’]?[^\W\d_]+(?:[-'’][^\W\d_]+)*)")
TITLE = re.compile(
    r"(?:^|\s)(?i:dr|prof|hr|fr|herr|frau|mr|mrs|ms|mme|mlle|sr|sra|dott|sig|pan|pani|p|dhr|mevr)\.?\s+"
    r"[^\W\d_a-z][^\W\d_]+"
)
UNNAMED = re.compile(r"column[0-9]+")  # of a file without a header
COMMON = frozenset(
    """anna anne ann maria mary marie eva ida rosa paul peter john jan jean juan jose ivan omar ali thomas michael
    andreas stefan christian martin daniel david robert james william george charles henry richard susan linda karen
    lisa emma julia laura sara sarah sophie sofia lena lea mia hannah marta monika ewa katarzyna malgorzata agnieszka
    krzysztof andrzej piotr tomasz marek jakub luca marco matteo giuseppe giovanni francesca giulia chiara paolo pierre
    jacques michel nicolas camille claire isabelle luis carlos antonio manuel miguel pedro carmen lucia ana sven lars
    erik hans klaus wolfgang jurgen dieter ursula petra sabine elisabeth elizabeth jennifer patricia smith jones brown
    johnson williams miller davis wilson taylor muller schmidt schneider fischer weber meyer wagner becker schulz
    hoffmann rossi russo ferrari esposito bianchi garcia fernandez gonzalez rodriguez lopez martinez sanchez perez
    martin bernard dubois durand silva santos costa nowak kowalski kowalska wisniewski novak jansen devries bakker khan
    hansen nielsen andersson johansson svensson anneliese karin brigitte renate gisela helga ingrid monica heike birgit
    claudia susanne andrea nicole stefanie katharina johanna elke gabriele angelika christine silke tanja kathe uwe
    heinz horst gunter gerhard helmut manfred rainer bernd frank ralf jorg thorsten matthias markus sebastian tobias
    florian alexander lukas leon felix max jonas kurt walter werner karl otto fritz soren bjorn olaf ulrike francois
    benoit helene zoe ines loic louis julien mathieu antoine luc yves chantal sylvie nathalie sandrine celine aurelie
    manon chloe lucas hugo alain philippe christophe laurent gilles mateusz pawel lukasz grzegorz michal adam jadwiga
    barbara krystyna zofia teresa halina irena danuta magdalena joanna aleksandra giorgio alessandro andrea stefano
    francesco roberto mario luigi elena valentina federica silvia javier alejandro sergio fernando jorge raul isabel
    pilar dolores teresa josefa mercedes rosario owen jack liam noah oliver harry charlie emily olivia amelia sophia
    priya grace margaret dorothy betty nancy sandra ashley kevin brian ronald jason jeffrey ryan gary eric stephen
    koch richter klein wolf schroder neumann schwarz zimmermann braun kruger hofmann hartmann lange schmitt werner
    krause meier lehmann kohler maier walter konig huber mayer weiss gross lefevre garcon benard dupont noel moreau
    laurent simon michel leroy roux fournier girard bonnet lambert patel obrien walsh murphy kelly evans thomas roberts
    wojcik kaminski lewandowski zielinski szymanski dabrowski kozlowski mazur krawczyk ricci marino greco romano
    colombo conti deluca gomez ruiz diaz hernandez jimenez moreno alvarez romero alonso navarro torres""".split()  # noqa: SIM905
)

Rule = Callable[[ColumnProfile, int], str]


def direct_identifier(column: ColumnProfile, rows: int) -> str:
    """Return why a column identifies people directly, or ""."""
    return next((why for rule in RULES if (why := rule(column, rows))), "")


def identifies_as_value(column: ColumnProfile, rows: int) -> str:
    """Return why a column identifies people directly although it would be published as a sensitive value, or "": a
    number that is named like an amount is no key, however many there are."""
    amount = column.kind in NUMBERS and words(column.name) & AMOUNTS and not words(column.name) & KEYS
    return "" if amount else direct_identifier(column, rows)


def doubtful(column: ColumnProfile, rows: int) -> str:
    """Return why a column may reveal more than its values show, or ""."""
    if column.kind != "text" or _is_place(column) or _is_code(column) or 2 * column.shape.dates > column.distinct:
        return ""
    if column.distinct > MANY_WORDS:
        return f"text with {column.distinct:,} distinct values: not clear what it reveals about people"
    if (column.distinct > FEW and column.alone > RARE * rows) or _mostly_distinct(column, rows):
        return f"text that makes {column.alone:,} rows unique: not clear what it reveals about people"
    return ""


def _key(column: ColumnProfile, rows: int) -> str:
    valued, text = rows - column.nulls, column.kind == "text"
    whole = column.kind == "integer" or (column.kind in NUMBERS and column.shape.whole)
    if not (text or whole) or column.distinct < NEARLY * valued or column.distinct < 2:
        return ""
    shape, named = column.shape, bool(words(column.name) & KEYS)
    running = whole and shape.least is not None and shape.most - shape.least + 1 == column.distinct > FEW
    running = running and not words(column.name) & AGES
    if named or running or rows >= (ENOUGH_TEXTS if text else ENOUGH_ROWS):
        return f"{column.distinct:,} distinct values in {valued:,} rows: a key, which identifies one row"
    return ""


def _named_for_people(column: ColumnProfile, rows: int) -> str:
    if column.kind == "boolean":
        return ""
    if column.kind == "text" and names_a_role(column.name) and column.distinct > 2 and not _is_code(column):
        return f"named like a person, with {column.distinct:,} distinct values of text"
    things = may_name_people(column.name) and not names_people(column.name) and len(words(column.name)) > 1
    few = column.distinct <= MANY_NAMES and column.distinct <= SHARE * rows
    if column.kind == "text" and (may_name_people(column.name) and not (things and few)):
        return f"named like the name of a person, with {column.distinct:,} distinct values"
    if points_at_people(column.name) and (column.distinct > FEW or column.kind == "text"):
        return f"named like what identifies a person, with {column.distinct:,} distinct values"
    if numbers_records(column.name) and (column.distinct > FEW or _mostly_distinct(column, rows)):
        return f"named like the number of a file, a card or a vehicle, with {column.distinct:,} distinct values"
    if words(column.name) & KEYS and column.distinct > MANY_NAMES:
        return f"named like a key, with {column.distinct:,} distinct values"
    return ""


def _addresses(column: ColumnProfile, rows: int) -> str:
    patterns = {
        "e-mail addresses": EMAIL.fullmatch,
        "account numbers (IBAN)": IBAN.fullmatch,
        "street addresses": _street,
    }
    for what, matches in patterns.items():
        if _share(column, lambda value, matches=matches: bool(matches(value))) >= SOME:  # type: ignore[misc]
            return f"its values look like {what}"
    return ""


def _numbers(column: ColumnProfile, rows: int) -> str:
    why = f"its values look like numbers of phones, accounts, insurances or taxes, of {DIGITS} digits or more"
    few = column.distinct <= FEW and not _mostly_distinct(column, rows)
    if _is_place(column) or few or 2 * column.shape.dates > column.distinct:
        return ""
    if column.kind in NUMBERS:
        return why if column.shape.whole and column.shape.shortest >= DIGITS else ""
    return why if _share(column, _long_number) >= MOST else ""


def _names(column: ColumnProfile, rows: int) -> str:
    if column.kind != "text" or _is_place(column):
        return ""
    if _share(column, _common_name) >= SOME:
        return "its values look like names of people"
    if _share(column, lambda value: bool(TITLE.search(value))) >= SOME:
        return "its values have titles of people"
    if UNNAMED.fullmatch(column.name) and column.distinct >= FEW_NAMES and _share(column, _capitalised) >= MOST:
        return "capitalised words under no name: they may be names of people"
    if _combined_freely(column):
        return "its values look like first and last names of people"
    many = column.distinct > MANY_NAMES or (column.distinct > FEW and column.distinct > SHARE * rows)
    many = many or _mostly_distinct(column, rows)
    if many and not names_sensitive(column.name) and _share(column, _capitalised) >= MOST:
        return f"{column.distinct:,} distinct values of capitalised words: they may be names of people"
    return ""


def _free_text(column: ColumnProfile, rows: int) -> str:
    if column.kind != "text":
        return ""
    sentences = column.distinct > FEW and _share(column, lambda value: len(value.split()) >= WORDY) >= SOME
    if sentences or column.shape.longest >= LONG // 2:
        return "free text, which may contain anything"
    return ""


RULES: tuple[Rule, ...] = (_key, _named_for_people, _addresses, _numbers, _names, _free_text)


def _share(column: ColumnProfile, test: Callable[[str], bool]) -> float:
    sample = column.shape.sample
    return sum(test(value.strip()) for value in sample) / len(sample) if sample else 0.0


def _mostly_distinct(column: ColumnProfile, rows: int) -> bool:
    """Return whether more than half of the values are different, as names and numbers are in a table of a few rows."""
    return column.distinct > 2 and 2 * column.distinct > rows


def _is_place(column: ColumnProfile) -> bool:
    return bool(words(column.name) & PLACES)


def _is_code(column: ColumnProfile) -> bool:
    return column.shape.digits == column.distinct and column.shape.longest < DIGITS


def _street(value: str) -> bool:
    return bool(STREET.search(value)) and any(c.isdigit() for c in value)


def _long_number(value: str) -> bool:
    return sum(c.isdigit() for c in value) >= DIGITS - 1 and bool(NUMBER.fullmatch(value))


def _common_name(value: str) -> bool:
    plain = "".join(c for c in unicodedata.normalize("NFKD", value) if not unicodedata.combining(c)).casefold()
    found = re.findall(r"[a-z]+", plain.replace("ł", "l"))
    return 0 < len(found) <= 4 and not any(c.isdigit() for c in value) and any(word in COMMON for word in found)


def _combined_freely(column: ColumnProfile) -> bool:
    """Return whether values are pairs of capitalised words of which the first does not determine the second, nor the
    other way round, as in names of people and hardly in names of other things."""
    pairs = {tuple(value.replace(",", " ").split()) for value in column.shape.sample if _capitalised(value.strip())}
    pairs = {pair for pair in pairs if len(pair) == 2}
    singles = sum(len({pair[at] for pair in pairs}) for at in (0, 1))
    return len(pairs) >= PAIRS and len(pairs) > singles and len(pairs) >= MOST * len(column.shape.sample)


def _capitalised(value: str) -> bool:
    parts = value.replace(",", " ").split()
    return 0 < len(parts) <= 4 and all(CAPITALISED.fullmatch(part) and part[0].isupper() for part in parts)
