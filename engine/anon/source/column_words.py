"""What the name of a column says about it: whether it names people, numbers them, or gives their age. Words of several
languages, without accents."""

from __future__ import annotations

import re
import unicodedata

KEYS = frozenset("id uid uuid guid key nr no num number nummer numero numer".split())  # noqa: SIM905
PEOPLE = frozenset(
    """person persons people patient patients client clients customer customers member members insured subscriber
    subscribers employee employees staff worker user users student students pupil pupils citizen resident respondent
    participant participants subject subjects donor donors borrower applicant kunde kunden versicherter versicherten
    mitarbeiter schueler paziente paciente pacientes cliente clientes assure salarie eleve empleado""".split()  # noqa: SIM905
)
# who a column of text names, if it says nothing else about them
PERSON_ROLES = PEOPLE | frozenset(
    """owner holder mother father parent parents spouse husband wife partner child sibling kin relative guardian contact
    doctor physician surgeon nurse attending practitioner gp author signatory witness caseworker beneficiary tenant
    versicherte versicherungsnehmer kontoinhaber inhaber mutter vater ehefrau ehemann ehepartner gatte angehorige
    angehoriger angehorigen ansprechpartner arzt hausarzt arztin betreuer sachbearbeiter kunde klient patientin
    mieter pere mere conjoint epoux epouse tuteur medecin titulaire beneficiaire client clientes locataire salariee
    patiente padre madre conyuge tutor medico doctor titular beneficiario asegurado afiliado trabajador alumno
    paciente coniuge tutore intestatario nominativo assicurato assistito dipendente lavoratore alunno medica moeder
    vader echtgenoot partner huisarts arts verzekerde clienten patienten medewerker werknemer leerling houder matka
    ojciec malzonek opiekun lekarz ubezpieczony ubezpieczona pacjent pacjentka klient klientka pracownik uczen
    posiadacz""".split()  # noqa: SIM905
)
FILLERS = frozenset(
    """of the next emergency primary main de du di del della la le el los curante traitant tratante behandelnder
    behandelnde behandelaar prowadzacy rodzinny famille familia cabecera maiden""".split()  # noqa: SIM905
)
RECORDS = frozenset(
    """chart badge plate plates serial imei licence license card voucher dossier matricule immatriculation akte
    aktenzeichen fallnummer fall kennzeichen kfz ausweis karte expediente historia legajo matricula tarjeta cartella
    tessera targa pratica matricola kenteken pas kaart karta karty dowod dowodu akta sygnatura rejestracja""".split()  # noqa: SIM905
)
DIRECT = frozenset(
    """email mail emailaddress phone telephone tel mobile cell fax address street ssn passport iban insurance account
    username login ip mrn nhs telefon handy adresse strasse anschrift ausweis telefono correo indirizzo direccion rue
    courriel mobil kontonummer konto steuernummer steuerid versichertennummer versicherungsnummer krankenkassennummer
    hausnummer adres ulica straat telefoon nif dni nie pesel bsn nino tax siret securite fiscale calle via endereco
    telefone""".split()  # noqa: SIM905
)
NAMES = frozenset(
    """name names surname surnames firstname lastname fullname forename forenames middlename maidenname givenname
    familyname nickname vorname vornamen nachname nachnamen familienname geburtsname zuname rufname nom noms prenom
    prenoms nombre nombres apellido apellidos nome cognome sobrenome imie nazwisko naam voornaam achternaam roepnaam
    tussenvoegsel voornamen voorletters geslachtsnaam initials initialen initiales iniciales iniziali inicjaly
    apelido namn fornamn efternamn etunimi sukunimi fornavn etternavn efternavn jmeno prijmeni meno priezvisko
    keresztnev vezeteknev prenume nume onoma eponymo""".split()  # noqa: SIM905
)
PART_OF_A_NAME = frozenset(
    "first last full middle maiden given family own nick famille usage usuel complet famiglia completo rodowe".split()  # noqa: SIM905
)
AGES = frozenset(
    """age ages birth born dob birthday birthdate birthyear yob geburt geburtsdatum geburtsjahr geburtstag geboren alter
    naissance nacimiento nascita nascimento edad eta idade urodzenia wiek""".split()  # noqa: SIM905
)
DATES = frozenset(
    """date dates datum day time timestamp when visit visits visited visitdate seen admitted admission discharged
    discharge treated treatment billed paid booked recorded created updated entered besuch besuchsdatum aufnahme
    aufnahmedatum entlassung entlassungsdatum behandlungsdatum buchungsdatum zeitpunkt tag visite venue sejour admis
    jour fecha ingreso visita dia ricovero giorno bezoek opname bezoekdatum wizyty wizyta przyjecia dzien""".split()  # noqa: SIM905
)
SENSITIVE = frozenset(
    """diagnosis diagnoses diagnose diagnosen dx dg icd disease diseases illness condition sickness diagnostic
    diagnostico diagnosi diagnoza rozpoznanie aandoening ziekte krankheit erkrankung maladie enfermedad malattia choroba
    affection pathology treatment therapy therapie procedure medication drug drugs atc prescription medikament
    medicament farmaco salary income wage wages earnings pay gehalt lohn einkommen salaire revenu salario sueldo
    ingresos stipendio reddito salaris inkomen loon wynagrodzenie dochod pensja religion konfession party vote
    ethnicity orientation hiv offence crime""".split()  # noqa: SIM905
)
COMPOUND = 7  # letters of a word that compounds may end in
AMOUNTS = frozenset(
    """cost costs amount charge charges price betrag kosten montant cout importe costo kwota bedrag salary wage wages
    pay income earnings gehalt lohn einkommen salaire revenu salario sueldo stipendio reddito salaris loon inkomen
    wynagrodzenie dochod pensja""".split()  # noqa: SIM905
)
SEXES = frozenset("sex gender geschlecht sexe sexo sesso plec geslacht kon kjonn".split())  # noqa: SIM905
POSTAL = frozenset("zip zipcode postal postcode postalcode plz pincode".split())  # noqa: SIM905
PLACES = POSTAL | frozenset(
    """city town village municipality county district ward region state province country area tract block parish
    location place lat lon latitude longitude lieu lugar luogo plaats miejsce wohnort geburtsort ort stadt gemeinde
    kreis bezirk land ville commune pays ciudad municipio provincia pais citta comune""".split()  # noqa: SIM905
)


def words(name: str) -> frozenset[str]:
    """Return the words that the name of a column is made of, in small letters.

    >>> sorted(words("PatientID")), sorted(words("zip_code")), sorted(words("Prénom"))
    (['id', 'patient'], ['code', 'zip'], ['prenom'])
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    plain = plain.replace("ł", "l").replace("Ł", "L").replace("ø", "o").replace("ß", "ss")
    return frozenset(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+", plain))


def names_sensitive(name: str) -> bool:
    """Return whether a name says that nobody may learn the values of a column, also at the end of a compound.

    >>> [names_sensitive(name) for name in ("diagnosis", "Hauptdiagnose", "Jahreseinkommen", "ward")]
    [True, True, True, False]
    """
    long = tuple(word for word in SENSITIVE if len(word) >= COMPOUND)
    return any(word in SENSITIVE or word.endswith(long) for word in words(name))


def numbers_people(name: str) -> bool:
    """Return whether a name says that a column numbers people.

    >>> [numbers_people(name) for name in ("patient_id", "PersonNr", "ssn", "ward_id", "patient")]
    [True, True, True, False, False]
    """
    found = words(name)
    return bool(found & PEOPLE and found & KEYS) or bool(found & {"ssn", "mrn", "passport", "nhs"})


def names_people(name: str) -> bool:
    """Return whether a name says that a column holds names of people, and not of other things.

    >>> [names_people(name) for name in ("first_name", "LastName", "Nachname", "patient name", "name", "drug_name")]
    [True, True, True, True, False, False]
    """
    found = words(name)
    return bool(found & (NAMES - {"name", "names", "nom", "nome", "nombre"})) or bool(
        found & NAMES and found & (PART_OF_A_NAME | PEOPLE)
    )


def names_a_role(name: str) -> bool:
    """Return whether a name says who somebody is, and nothing about them.

    >>> [names_a_role(name) for name in ("Hausarzt", "next_of_kin", "médico", "patient", "doctor_specialty", "sex")]
    [True, True, True, True, False, False]
    """
    found = words(name)
    return bool(found & PERSON_ROLES) and found <= PERSON_ROLES | FILLERS


def numbers_records(name: str) -> bool:
    """Return whether a name says that a column numbers files, cards or vehicles, which lead to people.

    >>> [numbers_records(name) for name in ("n_dossier", "Kfz-Kennzeichen", "badge", "ward")]
    [True, True, True, False]
    """
    return bool(words(name) & RECORDS)


def may_name_people(name: str) -> bool:
    """Return whether a column may hold names, of people or of things.

    >>> [may_name_people(name) for name in ("name", "drug_name", "Patientenname", "Imię", "born")]
    [True, True, True, True, False]
    """
    found = words(name)
    return bool(found & NAMES) or any(word.endswith(("name", "naam", "vorname", "nachname")) for word in found)


def points_at_people(name: str) -> bool:
    """Return whether a name says that a column holds numbers or addresses of people.

    >>> [points_at_people(name) for name in ("e_mail", "Kundennummer", "IBAN", "patient_id", "ward")]
    [True, True, True, True, False]
    """
    found = words(name)
    compounds = ("nummer", "telefon", "strasse", "adresse", "straat", "mail", "phone")
    return (
        bool(found & DIRECT)
        or numbers_people(name)
        or any(word.endswith((*compounds, "nr")) and word not in KEYS for word in found)
    )
