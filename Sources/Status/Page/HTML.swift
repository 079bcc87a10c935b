private import Base

/// A piece of HTML in which every value is escaped.
///
/// Markup comes from constants of the source only: the names of elements and attributes are of type `StaticString`.
struct HTML: Sendable {
    private(set) var markup: String

    /// Makes text, in which a value cannot become markup.
    init(_ text: String) {
        markup = Self.escaped(text)
    }

    private init(markup: String) {
        self.markup = markup
    }

    static let empty = HTML(markup: "")

    /// Makes a piece of markup that the source contains.
    static func constant(_ markup: StaticString) -> HTML { HTML(markup: markup.description) }

    static func + (left: HTML, right: HTML) -> HTML { HTML(markup: left.markup + right.markup) }

    /// Joins pieces without a separator.
    static func joined(_ pieces: [HTML]) -> HTML {
        HTML(markup: pieces.reduce(into: "") { $0 += $1.markup })
    }

    /// Makes the start tag of an element, which is all that some elements, such as `meta`, have.
    static func tag(_ name: StaticString, _ attributes: KeyValuePairs<StaticString, String>) -> HTML {
        var markup = "<\(name)"
        for (attribute, value) in attributes {
            markup += value.isEmpty ? " \(attribute)" : " \(attribute)=\"\(escaped(value))\""
        }
        return HTML(markup: markup + ">")
    }

    fileprivate static func endTag(_ name: StaticString) -> HTML { HTML(markup: "</\(name)>") }

    /// Escapes the characters that end a text or a quoted value, and shows the characters that would be invisible.
    ///
    /// Control and format characters could hide text or reverse the text after them (a bidirectional override), so that
    /// one user's id looks like another's.
    private static func escaped(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default:
                if scalar.isInvisible {
                    escaped += "\\u{\(String(scalar.value, radix: 16))}"
                } else {
                    escaped.unicodeScalars.append(scalar)
                }
            }
        }
        return escaped
    }
}

/// Makes an element with its content.
func element(
    _ name: StaticString,
    _ attributes: KeyValuePairs<StaticString, String> = [:],
    @HTMLBuilder content: () -> HTML
) -> HTML {
    .tag(name, attributes) + content() + .endTag(name)
}

/// Puts pieces of HTML together: texts are escaped.
@resultBuilder
enum HTMLBuilder {
    static func buildExpression(_ text: String) -> HTML { HTML(text) }
    static func buildExpression(_ html: HTML) -> HTML { html }
    static func buildBlock(_ pieces: HTML...) -> HTML { .joined(pieces) }
    static func buildArray(_ pieces: [HTML]) -> HTML { .joined(pieces) }
    static func buildOptional(_ piece: HTML?) -> HTML { piece ?? .empty }
    static func buildEither(first piece: HTML) -> HTML { piece }
    static func buildEither(second piece: HTML) -> HTML { piece }
}

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
        if let (content, end) = enclosed(text, by: "`", "`") { return (element("code") { String(content) }, end) }
        if let (content, end) = enclosed(text, by: "**", "**") { return (element("strong") { String(content) }, end) }
        guard let (title, end) = enclosed(text, by: "[", "]("), let close = text[end...].firstIndex(of: ")") else {
            return nil
        }
        return (HTML(markdown: String(title)), text.index(after: close))
    }

    private static func enclosed(_ text: Substring, by open: String, _ close: String) -> (Substring, String.Index)? {
        guard text.hasPrefix(open) else { return nil }
        let content = text.dropFirst(open.count)
        guard let range = content.firstRange(of: close) else { return nil }
        return (content[..<range.lowerBound], range.upperBound)
    }
}

extension StatusPage {
    /// Makes a table whose rows become blocks on a narrow screen.
    ///
    /// The first cell of a row names the row.
    ///
    /// The roles repeat those of the elements: a browser drops these for elements that are laid out as blocks.
    func table(_ caption: String, className: String = "", columns: [String], rows: [[HTML]]) -> HTML {
        element("table", className.isEmpty ? ["role": "table"] : ["role": "table", "class": className]) {
            element("caption") { caption }
            element("thead", ["role": "rowgroup"]) {
                element("tr", ["role": "row"]) {
                    for column in columns {
                        element("th", ["role": "columnheader", "scope": "col"]) { column }
                    }
                }
            }
            element("tbody", ["role": "rowgroup"]) {
                for row in rows {
                    element("tr", ["role": "row"]) {
                        for (column, cell) in zip(columns, row).prefix(1) {
                            element("th", ["role": "rowheader", "scope": "row", "data-label": column]) { cell }
                        }
                        for (column, cell) in zip(columns, row).dropFirst() {
                            element("td", ["role": "cell", "data-label": column]) { cell }
                        }
                    }
                }
            }
        }
    }

    /// Returns the beginning of a caption that says how many of all rows are shown.
    static func extent(shown: Int, of all: Int, _ noun: String) -> String {
        all > shown ? "\(number(shown)) of \(count(all, noun)); \(number(all - shown)) more are not shown." : ""
    }
}
