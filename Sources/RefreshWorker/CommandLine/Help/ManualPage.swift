/// Lays out a manual page in the macros of man(7) (https://man7.org/linux/man-pages/man7/man.7.html).
///
/// `make install` and `make deb` write the pages by `refresh-worker help --format`. The repository has no copies, which
/// each change of an option would have to update.
struct ManualPage {
    /// The width of a line before it is escaped.
    private static let width = 66

    private var lines: [String]

    var text: String { lines.joined(separator: "\n") + "\n" }

    init(name: String, section: Int, summary: String) {
        lines = [
            ".\\\" Written by: refresh-worker help --format \(name).\(section)",
            // Without a date, so that two builds of one version are the same.
            ".TH \(name.uppercased()) \(section) \"\" \"refresh-worker \(Version.current)\"",
            // No hyphens inside of names that users copy.
            ".nh",
            ".ad l",
            ".SH NAME",
            "\(name) \\- \(Self.escaped(summary))",
        ]
    }

    mutating func section(_ title: String) {
        lines.append(".SH \(title)")
    }

    mutating func subsection(_ title: String) {
        lines.append(".SS \"\(Self.escaped(title))\"")
    }

    mutating func paragraph(_ text: String) {
        beginParagraph()
        append(text)
    }

    /// Adds lines that are neither joined nor broken.
    mutating func verbatim(_ text: [String]) {
        beginParagraph()
        lines += [".nf"] + text.map(Self.line) + [".fi"]
    }

    mutating func definitions(_ entries: [(term: String, explanation: String)]) {
        for (term, explanation) in entries {
            lines += [".TP", ".B \(Self.escaped(term))"]
            append(explanation)
        }
    }

    mutating func examples(_ examples: KeyValuePairs<String, String>) {
        for (line, purpose) in examples {
            paragraph("Example, \(purpose):")
            lines += [".PP", ".RS 4", ".nf", Self.line(line), ".fi", ".RE"]
        }
    }

    /// A heading begins a paragraph too.
    private mutating func beginParagraph() {
        guard let last = lines.last, !last.hasPrefix(".S") else { return }
        lines.append(".PP")
    }

    private mutating func append(_ text: String) {
        lines += HelpPage.wrap(text, width: Self.width).map(Self.line)
    }

    /// Returns a line of text that is not taken for a request, although it begins like one.
    private static func line(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }

    /// Escapes what troff would replace: users copy flags, paths and quotes from the page.
    private static func escaped(_ text: String) -> String {
        text.map { character in
            switch character {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "\"": "\\(dq"
            case "`": "\\(ga"
            case "^": "\\(ha"
            case "~": "\\(ti"
            default: String(character)
            }
        }.joined()
    }
}
