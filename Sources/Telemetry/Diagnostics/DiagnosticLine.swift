import Base

/// The text of one diagnostic line: a prefix, a fixed message, and `key=value` for each variable part.
struct DiagnosticLine {
    /// The line limit, below `PIPE_BUF` (4096 bytes on Linux), so that one `write` puts a line into a pipe completely
    /// or not at all.
    private static let lineLimit = 4000
    private static let valueLimit = 512

    enum Style {
        /// For the journal, which records the time itself and reads the level from `<N>` at the start of the line.
        case journal
        /// With the time and level in the line.
        case plain
    }

    private var text: String

    init(style: Style, at instant: Timestamp, level: LogLevel, message: StaticString) {
        text =
            switch style {
            case .journal: "<\(level.priority)>"
            case .plain: "\(instant.iso8601Seconds) \(level.rawValue) "
            }
        text += Self.escaped(message.description)
    }

    mutating func add(_ key: String, _ value: String) {
        text += " \(key)=\(Self.rendered(value.capped(at: Self.valueLimit)))"
    }

    var bytes: [UInt8] { Array(text.capped(at: Self.lineLimit).utf8) + [UInt8(ascii: "\n")] }

    /// Returns the value, quoted if its end would be ambiguous.
    private static func rendered(_ value: String) -> String {
        let needsQuotes = value.isEmpty || value.unicodeScalars.contains { " \"=\\".unicodeScalars.contains($0) }
        return needsQuotes ? "\"\(escaped(value, quoted: true))\"" : escaped(value)
    }

    private static func escaped(_ value: String, quoted: Bool = false) -> String {
        var result = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\n": result += #"\n"#
            case "\"" where quoted, "\\" where quoted: result += "\\\(scalar)"
            case _ where scalar.disturbsTerminals: result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
