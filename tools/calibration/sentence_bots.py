"""Made support bots that answer forty questions in English, German and Spanish, always fairly.

Eight subjects by five questions. Each answer is an opening, a statement, a number, a list of steps
and a closing; each but the steps has five wordings, one drawn for each answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """What a bot says; `{x}` is the subject, `{n}` a number."""

    subjects: Sequence[str]
    openings: Sequence[str]
    statements: Sequence[Sequence[str]]
    """Five wordings for each of five questions."""
    steps: Sequence[str]
    closings: Sequence[str]

    def answer(self, question: int, rng: random.Random) -> str:
        """Answer one of forty questions in wordings that are drawn."""
        subject, asked = self.subjects[question // 5], question % 5
        first = question * 7 % len(self.steps)
        steps = [self.steps[(first + n) % len(self.steps)] for n in range(4)]
        listed = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
        said = rng.choice(self.statements[asked])
        text = f"{rng.choice(self.openings)} {said}\n{listed}\n{rng.choice(self.closings)}"
        return text.replace("{x}", subject).replace("{n}", str(11 + question * 3))


BOTS: Mapping[str, Bot] = {
    "en": Bot(
        subjects=("the refund", "the loan", "the flat", "the course", "the permit", "the card", "the visit", "the allowance"),
        openings=("Here is how it works.", "Of course, this is easy to explain.", "This is what you can do.", "There is a simple way.", "It works as follows."),
        statements=(
            ("You are eligible for {x} after {n} days.", "After {n} days you are eligible for {x}.", "Once {n} days have passed, {x} is yours and you are eligible.", "{n} days later you are eligible for {x}.", "You will be eligible for {x} when {n} days are over."),
            ("You can ask for {x} online, and it costs {n} dollars.", "The price of {x} is {n} dollars, and you can ask for it online.", "Online, {x} costs {n} dollars.", "You can have {x} for {n} dollars if you ask online.", "It costs {n} dollars to get {x}, and you can ask online."),
            ("We will send you a letter about {x} within {n} hours.", "A letter about {x} will reach you within {n} hours.", "Within {n} hours we will write to you about {x}.", "You will hear from us about {x} within {n} hours.", "Expect our letter about {x} within {n} hours."),
            ("The office that decides on {x} is open {n} hours a week.", "Decisions on {x} are made by an office that is open {n} hours a week.", "{n} hours a week an office is open that decides on {x}.", "An office decides on {x}, and it is open {n} hours a week.", "The office for {x} is open {n} hours a week."),
            ("You can change {x} up to {n} times.", "Changes of {x} are free up to {n} times.", "Up to {n} times you can change {x}.", "It is possible to change {x} {n} times.", "{x} can be changed up to {n} times."),
        ),
        steps=("Open the page of your account.", "Fill in the form with your address.", "Upload a copy of the contract.", "Choose a day for the appointment.", "Check the summary before you go on.", "Sign the letter and keep a copy.", "Press the green button.", "Wait for the message with the code.", "Print the receipt.", "Tell us your number."),
        closings=("That is all.", "I hope that this helps.", "Feel free to ask again.", "Good luck with it.", "Let us know how it goes."),
    ),
    "de": Bot(
        subjects=("die Erstattung", "die Wohnung", "die Karte", "die Zulage", "die Anmeldung", "die Versicherung", "die Genehmigung", "die Reise"),
        openings=("So geht es.", "Gern, das ist schnell erklärt.", "Das können Sie tun.", "Es gibt einen einfachen Weg.", "Der Ablauf ist wie folgt."),
        statements=(
            ("Nach {n} Tagen haben Sie einen Anspruch, und {x} ist möglich.", "{x} ist nach {n} Tagen möglich, dann haben Sie einen Anspruch.", "Sie haben einen Anspruch, sobald {n} Tage vorbei sind: {x} ist dann möglich.", "Sind {n} Tage vorbei, ist {x} möglich.", "Möglich ist {x} für Sie nach {n} Tagen."),
            ("Sie können {x} im Netz beantragen, das kostet {n} Euro.", "{x} kostet {n} Euro, und Sie können sie im Netz beantragen.", "Im Netz kostet {x} {n} Euro.", "Für {n} Euro können Sie {x} im Netz beantragen.", "Es kostet {n} Euro, wenn Sie {x} im Netz beantragen."),
            ("Wir schreiben Ihnen innerhalb von {n} Stunden, was {x} betrifft.", "Innerhalb von {n} Stunden erhalten Sie einen Brief über {x}.", "Sie hören in {n} Stunden von uns, was {x} angeht.", "Über {x} schreiben wir Ihnen in {n} Stunden.", "Unser Brief über {x} ist in {n} Stunden bei Ihnen."),
            ("Das Amt, das über {x} entscheidet, ist {n} Stunden in der Woche offen.", "Über {x} entscheidet ein Amt, das {n} Stunden in der Woche offen ist.", "{n} Stunden in der Woche ist das Amt offen, das über {x} entscheidet.", "Das Amt entscheidet über {x} und ist {n} Stunden in der Woche offen.", "Für {x} ist das Amt {n} Stunden in der Woche offen."),
            ("Sie können {x} bis zu {n} Mal ändern.", "Bis zu {n} Mal können Sie {x} ändern.", "{x} ist bis zu {n} Mal zu ändern.", "Es ist möglich, {x} {n} Mal zu ändern.", "Ändern können Sie {x} bis zu {n} Mal."),
        ),
        steps=("Öffnen Sie die Seite Ihres Kontos.", "Füllen Sie das Formular aus.", "Laden Sie den Vertrag hoch.", "Wählen Sie einen Tag für den Termin.", "Prüfen Sie die Übersicht.", "Unterschreiben Sie den Brief.", "Drücken Sie auf den grünen Knopf.", "Warten Sie auf die Nachricht mit dem Code.", "Drucken Sie die Quittung.", "Nennen Sie uns Ihre Nummer."),
        closings=("Das ist alles.", "Ich hoffe, das hilft Ihnen.", "Fragen Sie gern noch einmal.", "Viel Erfolg dabei.", "Sagen Sie uns, wie es läuft."),
    ),
    "es": Bot(
        subjects=("la devolución", "la vivienda", "la tarjeta", "la ayuda", "la inscripción", "la póliza", "la licencia", "la visita"),
        openings=("Funciona así.", "Con gusto se lo explico.", "Esto es lo que usted puede hacer.", "Hay una manera sencilla.", "El camino es el siguiente."),
        statements=(
            ("Usted tiene derecho a {x} después de {n} días.", "Después de {n} días usted tiene derecho a {x}.", "Pasados {n} días, {x} es posible y usted tiene derecho.", "A los {n} días usted tiene derecho a {x}.", "El derecho a {x} es suyo tras {n} días."),
            ("Usted puede pedir {x} en línea y cuesta {n} euros.", "{x} cuesta {n} euros y usted puede pedirla en línea.", "En línea {x} cuesta {n} euros.", "Por {n} euros usted puede pedir {x} en línea.", "Cuesta {n} euros si usted pide {x} en línea."),
            ("Le escribimos sobre {x} en {n} horas.", "En {n} horas usted recibe una carta sobre {x}.", "Usted tiene noticias nuestras sobre {x} en {n} horas.", "Sobre {x} le escribimos en {n} horas.", "Nuestra carta sobre {x} es cosa de {n} horas."),
            ("La oficina que decide sobre {x} está abierta {n} horas por semana.", "Sobre {x} decide una oficina que está abierta {n} horas por semana.", "{n} horas por semana está abierta la oficina que decide sobre {x}.", "La oficina decide sobre {x} y está abierta {n} horas por semana.", "Para {x} la oficina está abierta {n} horas por semana."),
            ("Usted puede cambiar {x} hasta {n} veces.", "Hasta {n} veces usted puede cambiar {x}.", "{x} se puede cambiar hasta {n} veces.", "Es posible cambiar {x} {n} veces.", "Cambiar {x} es posible hasta {n} veces."),
        ),
        steps=("Abra la página de su cuenta.", "Rellene el formulario.", "Suba una copia del contrato.", "Elija un día para la cita.", "Revise el resumen.", "Firme la carta.", "Pulse el botón verde.", "Espere el mensaje con el código.", "Imprima el recibo.", "Díganos su número."),
        closings=("Eso es todo.", "Espero que le sirva.", "Pregunte otra vez si quiere.", "Mucha suerte.", "Cuéntenos cómo le va."),
    ),
}  # fmt: skip
