/// Lays out help for a terminal of 80 columns.
struct HelpPage {
    private static let width = 80
    /// Where explanations begin; a longer term has its explanation on the next line.
    private static let indentation = 28

    private var blocks: [String] = []

    var text: String { blocks.joined(separator: "\n\n") + "\n" }

    mutating func paragraph(_ text: String) {
        blocks.append(Self.wrap(text, width: Self.width).joined(separator: "\n"))
    }

    /// A heading, which the next block follows without an empty line.
    mutating func heading(_ title: String) {
        blocks.append("\(title):")
    }

    /// Lines as they are, below the heading before them.
    mutating func lines(_ lines: [String]) {
        append(lines.map { "  " + $0 })
    }

    /// Terms and their explanations side by side; nothing at all when there are none.
    mutating func definitions(_ title: String, _ entries: [(term: String, explanation: String)]) {
        guard !entries.isEmpty else { return }
        heading(title)
        let longest = entries.map(\.term.count).max() ?? 0
        let column = min(longest + 4, Self.indentation)
        let margin = String(repeating: " ", count: column)
        append(
            entries.flatMap { term, explanation in
                let wrapped = Self.wrap(explanation, width: Self.width - column)
                let start = "  " + term
                let fits = start.count + 2 <= column
                let first = fits ? start + margin.dropFirst(start.count) + (wrapped.first ?? "") : start
                return [first] + wrapped.dropFirst(fits ? 1 : 0).map { margin + $0 }
            }
        )
    }

    mutating func examples(_ examples: [CommandSpecification.Example]) {
        guard !examples.isEmpty else { return }
        heading("Examples")
        append(examples.flatMap { ["  # \($0.purpose)", "  \($0.line)"] })
    }

    private mutating func append(_ lines: [String]) {
        blocks[blocks.count - 1] += "\n" + lines.joined(separator: "\n")
    }

    /// A command and what it takes, on as many lines as that needs; a flag and its value stay together.
    static func usage(of command: String, _ parts: [String]) -> [String] {
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

    /// Breaks text between words; a word longer than the width stays whole, because a path or URL must be copied.
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
