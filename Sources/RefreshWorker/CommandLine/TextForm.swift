import Base
import Status

/// How a text for people is laid out: folded and coloured on a terminal, and as it is elsewhere.
struct TextForm: Equatable, Sendable {
    /// The width to fold to, or `nil` to fold nothing.
    var width: Int?
    var isColoured = false

    /// A narrower terminal gets lines that it breaks itself, and a wider one lines that are easy to read.
    private static let widths = 40...80

    init(terminalWidth: Int? = nil, isColoured: Bool = false) {
        self.width = terminalWidth?.clamped(to: Self.widths)
        self.isColoured = isColoured
    }

    /// Returns a line, or several whose later ones are indented as far as the first one's text.
    func folded(_ text: String, after start: String) -> String {
        guard let width else { return start + text }
        let indentation = String(text.prefix { $0 == " " })
        let margin = String(repeating: " ", count: start.count) + indentation
        let lines = HelpPage.wrap(text, width: width - margin.count)
        return start + indentation + lines.joined(separator: "\n\(margin)")
    }

    /// Colours a verdict: green, or the colour of its severity (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    func coloured(_ text: String, by severity: Severity?) -> String {
        guard isColoured else { return text }
        let colour =
            switch severity {
            case .now: 31
            case .soon: 33
            case .tomorrow: 34
            case nil: 32
            }
        return "\u{1b}[\(colour)m\(text)\u{1b}[0m"
    }
}
