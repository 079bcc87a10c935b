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

    static func endTag(_ name: StaticString) -> HTML { HTML(markup: "</\(name)>") }

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
            case _ where scalar.isInvisible: escaped += scalar.escape
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
