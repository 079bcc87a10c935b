import Base

/// The forms of values: times, numbers, codes and long names.
extension StatusPage {
    /// The characters of a name that are shown: enough to recognise it, and the page stays small.
    static let nameLimit = 80
    /// The rows of a list that are shown.
    static let rowLimit = 10

    /// An instant in UTC, with its distance from now.
    ///
    /// The text is also the form for programs, so the element needs no attribute `datetime`.
    func time(_ instant: Timestamp) -> HTML {
        element("time") { instant.iso8601Seconds }
            + HTML(" ")
            + element("small") { "(\(Self.distance(from: at, to: instant)))" }
    }

    func time(_ instant: Timestamp?, otherwise none: String) -> HTML {
        instant.map { time($0) } ?? HTML(none)
    }

    static func distance(from now: Timestamp, to instant: Timestamp) -> String {
        let distance = instant - now
        if distance >= .seconds(1) { return "in \(distance.inTwoUnits)" }
        if distance <= .seconds(-1) { return "\((.zero - distance).inTwoUnits) ago" }
        return "now"
    }

    /// A short span, with milliseconds below a second and tenths below ten seconds.
    static func span(_ span: Duration) -> String {
        let milliseconds = span.wholeMilliseconds
        if milliseconds == 0 { return "0 s" }
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        if milliseconds < 10_000 { return "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" }
        return span.inTwoUnits
    }

    /// A whole number with a comma after each group of three digits.
    static func number(_ value: Int) -> String {
        let digits = String(value.magnitude)
        var text = value < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return text
    }

    /// A count with its noun.
    static func count(_ value: Int, _ noun: String) -> String { "\(number(value)) \(noun)\(value == 1 ? "" : "s")" }

    /// A code or an id.
    func code(_ text: String) -> HTML {
        element("code") { Self.shortened(text, limit: Self.nameLimit) }
    }

    /// A name that a user or an operator chose, which can run from right to left.
    func name(_ text: String) -> HTML {
        element("bdi", ["class": "code"]) { Self.shortened(text, limit: Self.nameLimit) }
    }

    static func shortened(_ text: String, limit: Int) -> String {
        guard text.unicodeScalars.count > limit else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit))) + "…"
    }

    /// A word whose colour repeats its meaning.
    func label(_ text: String, meaning: Meaning) -> HTML {
        element("span", ["class": "label \(meaning.rawValue)"]) { Self.shortened(text, limit: Self.nameLimit) }
    }

    enum Meaning: String {
        case good, bad, soon, tomorrow, neutral

        init(_ severity: Severity) {
            self =
                switch severity {
                case .now: .bad
                case .soon: .soon
                case .tomorrow: .tomorrow
                }
        }
    }

    /// A section with its heading.
    func section(_ heading: String, id: String, @HTMLBuilder content: () -> HTML) -> HTML {
        element("section", ["id": id, "aria-labelledby": "\(id)-heading"]) {
            element("h2", ["id": "\(id)-heading"]) { heading }
            content()
        }
    }

    /// The sentence for a part that cannot be shown.
    func unknown(_ sentence: String) -> HTML {
        element("p") {
            label("unknown", meaning: .bad)
            " "
            sentence
        }
    }
}
