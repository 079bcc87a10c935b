"""What one build shows, as texts by title, without what each run has of its own."""

import json
import re

# The parts of a text that differ between two runs of one program: times, random ids, tokens, and sizes.
OWN_PARTS = [
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]*", "TOKEN"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?( UTC)?", "TIME"),
    (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "TIME"),
    (r"\b(ya29\.|1//|4/0A?|msg_|rws_|rwr_)[\w.-]+", r"\1RANDOM"),
    (r"\b\d{8}T\d{6}Z", "TIME"),
    (r"\b\d+-[0-9a-f]{4,8}\b", "WORKER"),
    (r"\b(paused_seconds|per_second)=[\d.]+", r"\1=N"),
    (r"\bat most [\d.]+ requests", "at most N requests"),
    (r"\bntc_([0-9a-f]{24}|[0-9a-f]{8}_\d+)", "NOTICE"),
    (r"\bv1,[\w+/]{43}=", "SIGNATURE"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b[0-9a-f]{16}\b", "ID"),
    (r"\b[0-9a-f]{12}\b", "COMMIT"),
    (r"\b(?=[a-f]*\d)[0-9a-f]{8}\b", "KEY"),
    (r"(?<![\w/+-])[\w+-]{43}=?(?![\w/+-])", "SECRET"),
    (r"127\.0\.0\.1:\d{4,5}|localhost:\d{4,5}", "HOST:PORT"),
    (r"\b(pid|process)([ =:]+)\d+", r"\1\2N"),
    (r"\b1[789]\d{8}(\d{3})?\b", "TIME"),
    (r"\b\d+ (d|h|min) \d+ (h|min|s)\b|\b\d+(\.\d+)? (d|h|min|s|ms)\b", "SPAN"),
    (r"\b\d+(\.\d+)? (GB|MB|KiB|MiB|GiB)\b", "SIZE"),
    (r"\b(in|for) SPAN\b|\bSPAN ago\b|\bnow\b", "NOW"),
    (" +", " "),
]


def masked(text, places=()):
    """The text with a name in place of each path and of each part that differs between two runs."""
    for path, name in places:
        text = text.replace(str(path), name)
    for pattern, name in OWN_PARTS:
        text = re.sub(pattern, name, text)
    return text


# Numbers with these names are times, or count what depends on speed.
OWN_NUMBERS = re.compile(
    "(_at|_ms|_in|bytes|_seconds|_until|_since|_for|_per_s|iat|exp|nbf)$|^(time|since|uptime|pid|port)"
)


def pretty(value, name="", numbers=False):
    """JSON as lines, in the order of its members; without its numbers, or only without the times."""
    if isinstance(value, dict):
        value = {key: pretty(child, key, numbers) for key, child in value.items()}
    elif isinstance(value, list):
        value = [pretty(child, name, numbers) for child in value]
    elif type(value) in (int, float) and (not numbers or OWN_NUMBERS.search(name)):
        value = "NUMBER"
    return value


def as_lines(text, numbers=True):
    """A JSON text as lines, one for each member; any other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(pretty(value, numbers=numbers), indent=1, ensure_ascii=False)


class Recording:
    """The texts of one build, by title."""

    def __init__(self):
        self.texts = {}

    def add(self, title, text):
        """Keeps a text; the same title a second time gets a number."""
        name, count = title, 1
        while name in self.texts:
            count += 1
            name = f"{title} ({count})"
        self.texts[name] = text


def record_events(source, events, recording):
    """The members of each event of a metrics log, with the types of their values."""
    for name in sorted({event["event"] for event in events}):
        members = {}
        for event in events:
            if event["event"] == name:
                for key, value in event.items():
                    members.setdefault(key, set()).add(type(value).__name__)
        lines = [f"{key}: {', '.join(sorted(types))}" for key, types in sorted(members.items())]
        recording.add(f"metrics log of {source}, event {name}", "\n".join(lines))
