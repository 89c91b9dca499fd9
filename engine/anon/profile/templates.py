"""Configs for four sectors: what such tables usually hold, who may know what of it, and which criteria fit. A template
is valid by itself; with a table its columns are matched by their names, and take the role of the template where their
values allow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anon.profile.columns import NUMBERS, ColumnProfile, Profile
from anon.profile.recognition import direct_identifier, identifies_as_value
from anon.source.column_words import AGES, AMOUNTS, DATES, PLACES, POSTAL, SEXES, words
from anon.source.column_words import SENSITIVE as SENSITIVE_WORDS

IDENTIFIER, QUASI, SENSITIVE, DROP = "identifier", "quasi-identifier", "sensitive", "drop"
SUPPRESS, CALENDAR = "suppress: true", "calendar: [day, month, quarter, year]"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


WARDS = _set("ward department clinic station abteilung fachabteilung service reparto servicio afdeling oddzial")
DIAGNOSES = _set(
    "diagnosis diagnoses diagnose diagnosen icd disease diagnostic diagnostico diagnosi diagnoza krankheit"
)
TREATMENTS = _set("procedure treatment therapy ops drug atc medication prescription medikament medicament farmaco lek")
JOBS = _set(
    "job occupation profession beruf position title poste empleo ocupacion lavoro beroep zawod stanowisko grade"
)
SCHOOLS = _set("education degree school bildung abschluss diplome estudios istruzione opleiding wyksztalcenie")
FAMILIES = _set("marital civil household children familienstand civile stan burgerlijke kinder enfants hijos figli")
BELIEFS = _set("religion confession konfession ethnicity race origin nationality herkunft religione wyznanie")
RATINGS = _set("rating performance review appraisal bewertung beurteilung evaluation evaluacion valutazione ocena")
ABSENCES = _set("absence absences sick sickness fehltage krankheitstage absences ausencias assenze verzuim")
INSURERS = _set("plan insurer payer tariff kasse krankenkasse tarif mutuelle aseguradora")
PROVIDERS = _set("provider hospital practice prescriber leistungserbringer prestataire proveedor")


@dataclass(frozen=True)
class Field:
    """A column that a sector's tables usually have: its name in the template, the words of its names elsewhere, its
    role, how it becomes coarser, and the reason."""

    name: str
    words: frozenset[str]
    role: str
    builder: str
    why: str


@dataclass(frozen=True)
class Template:
    """The config of a sector. `c` is the confidence that an adversary who knows a little must not reach, `t` how far
    the numbers of a group may be from those of the table."""

    name: str
    about: tuple[str, ...]
    individual: str
    k: int
    why_k: str
    fields: tuple[Field, ...]
    c: float = 0.8
    t: float = 0.3
    by: str = ""  # the column that orders the rows of an individual, if there may be several

    def of_role(self, role: str) -> list[Field]:
        return [field for field in self.fields if field.role == role]


AGE = Field("age", AGES, QUASI, "intervals: [5, 10, 20], top: 90", "known to anyone who knows the person")
SEX = Field("sex", SEXES, QUASI, SUPPRESS, "known to anyone")
ZIP = Field("zip", POSTAL, QUASI, "digits: 5", "where somebody lives is known to neighbours")
TEMPLATES = {
    template.name: template
    for template in (
        Template(
            "hospital",
            ("Stays or visits of patients, for researchers outside the hospital.",
             "Neighbours, employers and family may know when and where somebody was treated; nobody may learn why."),
            "patient_id", 5, "five is the usual minimum for health data that are not public",
            (
                AGE, SEX, ZIP,
                Field("admitted", DATES, QUASI, CALENDAR, "visitors and employers know when somebody was away"),
                Field("ward", WARDS, QUASI, SUPPRESS, "visitors know it"),
                Field("diagnosis", DIAGNOSES, SENSITIVE, "", "what nobody may learn"),
            ),
            by="admitted",
        ),
        Template(
            "claims",
            ("Claims of insured people, for analysis outside the insurer.",
             "Providers and employers may know when somebody was treated and where they are insured."),
            "insured_id", 11, "eleven: smaller cells of claims are not published by many public payers",
            (
                AGE, SEX, ZIP,
                Field("billed_on", DATES, QUASI, CALENDAR, "providers know when they treated somebody"),
                Field("plan", INSURERS, QUASI, SUPPRESS, "employers know it"),
                Field("provider", PROVIDERS, DROP, "", "one provider with one patient identifies them"),
                Field("diagnosis", DIAGNOSES | TREATMENTS, SENSITIVE, "", "what nobody may learn"),
                Field("amount", AMOUNTS, SENSITIVE, "round: 50", "what nobody may learn; rounded"),
            ),
            t=0.25, by="billed_on",
        ),
        Template(
            "census",
            ("People of a census or a survey, for the public.",
             "Everybody may know the age, the sex, the place, the work and the family of somebody they look for."),
            "person_id", 10, "ten, because the file is public",
            (
                AGE, SEX, ZIP,
                Field("region", PLACES - POSTAL, QUASI, SUPPRESS, "public"),
                Field("marital", FAMILIES, QUASI, SUPPRESS, "public"),
                Field("education", SCHOOLS, QUASI, SUPPRESS, "colleagues and neighbours know it"),
                Field("occupation", JOBS, QUASI, SUPPRESS, "colleagues and neighbours know it"),
                Field("religion", BELIEFS, SENSITIVE, "", "a special category of personal data"),
                Field("income", AMOUNTS, SENSITIVE, "round: 1000", "what nobody may learn; rounded"),
            ),
            c=0.9, t=0.2,
        ),
        Template(
            "hr",
            ("Employees, for a study of pay.",
             "Colleagues know nearly everything but the pay, the rating and the days of sickness."),
            "employee_id", 5, "five: a team is rarely smaller",
            (
                AGE, SEX,
                Field("entered", DATES, QUASI, CALENDAR, "colleagues know it"),
                Field("department", WARDS, QUASI, SUPPRESS, "colleagues know it"),
                Field("position", JOBS, QUASI, SUPPRESS, "colleagues know it"),
                Field("education", SCHOOLS, QUASI, SUPPRESS, "colleagues know it"),
                Field("salary", AMOUNTS, SENSITIVE, "round: 500", "what nobody may learn; rounded"),
                Field("rating", RATINGS, SENSITIVE, "", "what nobody may learn"),
                Field("sick_days", ABSENCES, SENSITIVE, "", "a special category of personal data"),
            ),
            t=0.2,
        ),
    )
}  # fmt: skip


def matched(template: Template, profile: Profile, individual: str | None) -> dict[str, Field]:
    """Return the columns of a table that are those of a template, by their names. One that identifies people keeps the
    role that its values give it; one that is sensitive in itself stays so in every template."""
    found: dict[str, Field] = {}
    for column in profile.columns:
        field = _field(template, column)
        if field is not None and column.name not in (individual, *profile.persons.names):
            found[column.name] = field
    return {name: field for name, field in found.items() if _fits(profile.column(name), field, profile)}


def _field(template: Template, column: ColumnProfile) -> Field | None:
    own = words(column.name)
    by_role = sorted(template.fields, key=lambda field: field.role != SENSITIVE)
    found = [field for field in by_role if own & field.words]
    if not found or (found[0].role != SENSITIVE and own & SENSITIVE_WORDS):
        return None
    return found[0]


def _fits(column: ColumnProfile, field: Field, profile: Profile) -> bool:
    if column.kind is None or column.distinct < 2:
        return False
    if field.role == SENSITIVE:
        numbers = column.kind in NUMBERS or "round" not in field.builder
        return numbers and not identifies_as_value(column, profile.rows)
    return field.role == DROP or not direct_identifier(column, profile.rows)


def reasons(template: Template, found: Mapping[str, Field]) -> dict[str, str]:
    """Return why each matched column has its role."""
    return {name: f"{template.name} template: {field.why}" for name, field in found.items()}
