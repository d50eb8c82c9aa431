# ruff: noqa: RUF001  (letters of every script)
"""The script of a text, and unrelated sentences in it, by which an embedder can be tried.

An embedder whose vocabulary lacks a script holds all sentences in it nearly alike: no sentence is
strange to it, whatever it says.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

UNRELATED: Mapping[str, tuple[str, ...]] = {
    "Latin": (
        "The river froze in January.",
        "Our shop opens at nine.",
        "She plays the violin well.",
        "Please sign the contract.",
        "Tomatoes need a lot of sun.",
        "He lost his passport abroad.",
    ),
    "Korean": (
        "강이 일월에 얼었습니다.",
        "우리 가게는 아홉 시에 엽니다.",
        "그녀는 바이올린을 잘 켭니다.",
        "계약서에 서명해 주세요.",
        "토마토는 햇빛이 많이 필요합니다.",
        "그는 외국에서 여권을 잃어버렸습니다.",
    ),
    "Japanese": (
        "一月に川が凍りました。",
        "当店は九時に開きます。",
        "彼女はバイオリンが上手です。",
        "契約書に署名してください。",
        "トマトにはたくさんの日光が必要です。",
        "彼は外国で旅券をなくしました。",
    ),
    "Chinese": (
        "河在一月结冰了。",
        "我们的店九点开门。",
        "她小提琴拉得很好。",
        "请在合同上签字。",
        "西红柿需要很多阳光。",
        "他在国外丢了护照。",
    ),
    "Cyrillic": (
        "Река замёрзла в январе.",
        "Наш магазин открывается в девять.",
        "Она хорошо играет на скрипке.",
        "Пожалуйста, подпишите договор.",
        "Помидорам нужно много солнца.",
        "Он потерял паспорт за границей.",
    ),
    "Arabic": (
        "تجمد النهر في يناير.",
        "يفتح متجرنا في التاسعة.",
        "هي تعزف الكمان جيدا.",
        "يرجى توقيع العقد.",
        "الطماطم تحتاج إلى الكثير من الشمس.",
        "فقد جواز سفره في الخارج.",
    ),
    "Devanagari": (
        "जनवरी में नदी जम गई।",
        "हमारी दुकान नौ बजे खुलती है।",
        "वह वायलिन अच्छा बजाती है।",
        "कृपया अनुबंध पर हस्ताक्षर करें।",
        "टमाटर को बहुत धूप चाहिए।",
        "उसका पासपोर्ट विदेश में खो गया।",
    ),
    "Thai": (
        "แม่น้ำแข็งตัวในเดือนมกราคม",
        "ร้านของเราเปิดเก้าโมง",
        "เธอเล่นไวโอลินเก่ง",
        "กรุณาเซ็นสัญญา",
        "มะเขือเทศต้องการแดดมาก",
        "เขาทำหนังสือเดินทางหายในต่างประเทศ",
    ),
    "Greek": (
        "Το ποτάμι πάγωσε τον Ιανουάριο.",
        "Το κατάστημά μας ανοίγει στις εννιά.",
        "Παίζει καλά βιολί.",
        "Παρακαλώ υπογράψτε το συμβόλαιο.",
        "Οι ντομάτες χρειάζονται πολύ ήλιο.",
        "Έχασε το διαβατήριό του στο εξωτερικό.",
    ),
    "Hebrew": (
        "הנהר קפא בינואר.",
        "החנות שלנו נפתחת בתשע.",
        "היא מנגנת היטב בכינור.",
        "נא לחתום על החוזה.",
        "עגבניות צריכות הרבה שמש.",
        "הוא איבד את הדרכון בחוץ לארץ.",
    ),
}
"""Script to sentences of which no two speak of the same."""
_SCRIPTS = {
    "LATIN": "Latin", "HANGUL": "Korean", "HIRAGANA": "Japanese", "KATAKANA": "Japanese",
    "CJK": "Chinese", "CYRILLIC": "Cyrillic", "ARABIC": "Arabic", "DEVANAGARI": "Devanagari",
    "THAI": "Thai", "GREEK": "Greek", "HEBREW": "Hebrew",
}  # fmt: skip
_KANA = 0.1
"""Share of a text's letters that are kana from which Chinese characters are Japanese."""


def script_of(texts: Iterable[str]) -> str:
    """Name the script of most letters, a key of `UNRELATED`; empty where it is none of them."""
    letters = Counter(letter for text in texts for letter in text if letter.isalpha())
    counts = Counter[str]()
    for letter, count in letters.items():
        first_word = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
        counts[_SCRIPTS.get(first_word, "")] += count
    if counts["Japanese"] > _KANA * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"] += counts.pop("Chinese", 0)
    return max(counts, key=lambda script: (counts[script], script), default="")
