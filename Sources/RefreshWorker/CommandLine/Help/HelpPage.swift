/// Lays out help for a terminal.
struct HelpPage {
    /// The width for a pipe and for a wider terminal.
    static let usualWidth = 80

    private let width: Int
    private var blocks: [String] = []

    init(width: Int = usualWidth) {
        self.width = width
    }

    /// The column at which explanations begin, on the next line if the term is too long: always on a narrow terminal.
    private var indentation: Int { width < 60 ? 8 : 28 }

    var text: String { blocks.joined(separator: "\n\n") + "\n" }

    mutating func paragraph(_ text: String) {
        blocks.append(Self.wrap(text, width: width).joined(separator: "\n"))
    }

    /// Adds a heading, which the next block follows without an empty line.
    mutating func heading(_ title: String) {
        blocks.append("\(title):")
    }

    /// Adds lines unchanged, below the last heading.
    mutating func lines(_ lines: [String]) {
        append(lines.map { "  " + $0 })
    }

    /// Adds terms with their explanations in two columns, or nothing if there are no entries.
    mutating func definitions(_ title: String, entries: [(term: String, explanation: String)]) {
        guard !entries.isEmpty else { return }
        heading(title)
        let longest = entries.map(\.term.count).max() ?? 0
        let column = min(longest + 4, indentation)
        let margin = String(repeating: " ", count: column)
        append(
            entries.flatMap { term, explanation in
                let wrapped = Self.wrap(explanation, width: width - column)
                let start = "  " + term
                let fits = start.count + 2 <= column
                let first = fits ? start + margin.dropFirst(start.count) + (wrapped.first ?? "") : start
                return [first] + wrapped.dropFirst(fits ? 1 : 0).map { margin + $0 }
            }
        )
    }

    mutating func examples(_ examples: KeyValuePairs<String, String>) {
        guard !examples.isEmpty else { return }
        heading("Examples")
        append(examples.flatMap { line, purpose in ["  # \(purpose)", "  \(line)"] })
    }

    private mutating func append(_ lines: [String]) {
        blocks[blocks.count - 1] += "\n" + lines.joined(separator: "\n")
    }

    /// Lays out a command and its arguments on as many lines as needed, and keeps a flag and its value together.
    static func usage(of command: String, parts: [String], width: Int) -> [String] {
        var lines = [command]
        for part in parts {
            if 2 + lines[lines.count - 1].count + 1 + part.count > width {
                lines.append("     \(part)")
            } else {
                lines[lines.count - 1] += " \(part)"
            }
        }
        return lines
    }

    /// Breaks text between words.
    ///
    /// A word longer than the width stays whole, because users copy paths and URLs.
    static func wrap(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty && line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(word) : " " + word
        }
        return lines + [line]
    }
}
