extension HTML {
    /// Makes a line of Markdown with the marks that the runbook has: `code`, **bold** and [links](target).
    ///
    /// A link becomes its text, because the page does not have the other documents.
    init(markdown text: String) {
        self = .empty
        var rest = text[...]
        while let start = rest.firstIndex(where: { "`*[".contains($0) }) {
            guard let (piece, end) = Self.marked(rest[start...]) else {
                self = self + HTML(String(rest[...start]))
                rest = rest[rest.index(after: start)...]
                continue
            }
            self = self + HTML(String(rest[..<start])) + piece
            rest = rest[end...]
        }
        self = self + HTML(String(rest))
    }

    /// Returns the marked text at the beginning, and the index after its marks.
    private static func marked(_ text: Substring) -> (HTML, String.Index)? {
        if let (content, end) = enclosed(text, from: "`", to: "`") { return (element("code") { String(content) }, end) }
        if let (content, end) = enclosed(text, from: "**", to: "**") {
            return (element("strong") { String(content) }, end)
        }
        guard let (title, end) = enclosed(text, from: "[", to: "]("), let close = text[end...].firstIndex(of: ")")
        else {
            return nil
        }
        return (HTML(markdown: String(title)), text.index(after: close))
    }

    private static func enclosed(_ text: Substring, from open: String, to close: String) -> (Substring, String.Index)? {
        guard text.hasPrefix(open) else { return nil }
        let content = text.dropFirst(open.count)
        guard let range = content.firstRange(of: close) else { return nil }
        return (content[..<range.lowerBound], range.upperBound)
    }
}
