internal import Base

/// The text of one diagnostic line: a prefix, a fixed message, and `key=value` for each variable part.
struct DiagnosticLine {
    /// The line limit, below `PIPE_BUF` (4096 bytes on Linux), so that one `write` puts a line into a pipe completely
    /// or not at all.
    private static let maximumLine = 4000
    private static let maximumValue = 512

    private var text: String

    /// Begins a line with its time and level.
    ///
    /// The journal records the time itself, and reads the level from `<N>` at the start of the line.
    init(isForJournal: Bool, at instant: Timestamp, level: LogLevel, message: String) {
        text = isForJournal ? "<\(level.priority)>" : "\(instant.iso8601Seconds) \(level.rawValue) "
        text += Self.escaped(message)
    }

    mutating func add(_ key: String, _ value: String) {
        text += " \(key)=\(Self.rendered(value.capped(at: Self.maximumValue)))"
    }

    var bytes: [UInt8] { Array(text.capped(at: Self.maximumLine).utf8) + [UInt8(ascii: "\n")] }

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
            case _ where scalar.disturbsTerminals: result += scalar.escape
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
