import Base

/// The forms of values: times, codes and long names.
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
            + element("small") { "(\(instant.distanceInTwoUnits(from: at)))" }
    }

    func time(_ instant: Timestamp?, otherwise none: String) -> HTML {
        instant.map { time($0) } ?? HTML(none)
    }

    /// A code or an id.
    func code(_ text: String) -> HTML {
        element("code") { text.shortened(to: Self.nameLimit) }
    }

    /// A name that a user or an operator chose, which can run from right to left.
    func name(_ text: String) -> HTML {
        element("bdi", ["class": "code"]) { text.shortened(to: Self.nameLimit) }
    }

    /// A word whose colour repeats its meaning.
    func label(_ text: String, meaning: Meaning) -> HTML {
        element("span", ["class": "label \(meaning.rawValue)"]) { text.shortened(to: Self.nameLimit) }
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
