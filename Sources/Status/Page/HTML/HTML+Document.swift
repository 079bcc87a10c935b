extension HTML {
    /// Makes a document of Markdown: headings with their ids, paragraphs, and code and tables as they are.
    ///
    /// Each item of a list is a paragraph that begins with its mark.
    init(document text: String) {
        var pieces: [HTML] = []
        var paragraph = ""
        var code: [HTML] = []
        func finish() {
            if !paragraph.isEmpty { pieces.append(element("p") { HTML(markdown: paragraph) }) }
            if !code.isEmpty { pieces.append(element("pre") { HTML.joined(code) }) }
            (paragraph, code) = ("", [])
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isHeading = line.hasPrefix("#")
            let isItem = line.firstMatch(of: /^(-|[0-9]+\.)\s/) != nil
            let isCode = line.hasPrefix("    ") || line.hasPrefix("|")
            let isInCode = !code.isEmpty
            if line.isEmpty || isHeading || isItem || isCode != isInCode { finish() }
            if isHeading {
                pieces.append(Self.heading(line))
            } else if isCode {
                code.append(HTML(String(line)) + HTML.constant("\n"))
            } else {
                paragraph += (paragraph.isEmpty ? "" : " ") + line.drop { $0 == " " }
            }
        }
        finish()
        self = .joined(pieces)
    }

    /// The id of a heading is its text as links to it have it.
    private static func heading(_ line: Substring) -> HTML {
        let level = line.prefix { $0 == "#" }.count
        let title = String(line.dropFirst(level + 1))
        let id = title.lowercased().replacing(" ", with: "-")
        return switch level {
        case 1: element("h1", ["id": id]) { title }
        case 2: element("h2", ["id": id]) { title }
        default: element("h3", ["id": id]) { title }
        }
    }
}
