/// A file of `KEY=value` lines in the syntax of systemd's `EnvironmentFile`.
///
/// It follows systemd's parser (`parse_env_file_internal`,
/// https://github.com/systemd/systemd/blob/v252/src/basic/env-file.c): `#` and `;` begin a comment line, blanks around
/// key and value do not count, a backslash at the end of a line joins the next line, single quotes keep everything
/// literally, and double quotes unescape `\"`, `\\`, `` \` `` and `\$`. Three things that systemd ignores silently are
/// mistakes here, because each would lose a setting: a line without `=`, an unclosed quote, and text that is not UTF-8.
/// A comment ends with its line, as it does since systemd 254.
struct EnvironmentFile: Sendable {
    struct Entry: Sendable {
        let key: String
        let value: String
        let line: Int
    }

    struct Mistake: Sendable {
        /// The line on which it begins.
        let line: Int
        let message: String
    }

    private(set) var entries: [Entry] = []
    private(set) var mistakes: [Mistake] = []

    private let bytes: [UInt8]
    private var position: Int
    private var line = 1
    /// The line of a quote that the file does not close, which nothing follows.
    private var unclosedQuote: Int?

    /// Parses the bytes of a file in one pass, and collects the mistakes instead of failing, so that all are reported.
    init(parsing bytes: [UInt8]) {
        self.bytes = bytes
        // Editors on Windows write a byte-order mark first. It does not belong to the first key.
        position = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        while let byte = nextByte {
            if byte.isBlank || byte.isLineEnd {
                advance()
            } else if byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") {
                skipLine()
            } else {
                readAssignment()
            }
        }
    }

    private mutating func add(key: [UInt8], value: [UInt8], line: Int) {
        guard let key = String(validating: key, as: UTF8.self), let value = String(validating: value, as: UTF8.self)
        else {
            reject("is not UTF-8 text", line: line)
            return
        }
        guard !key.isEmpty else {
            reject("has no key before =", line: line)
            return
        }
        entries.append(Entry(key: key, value: value, line: line))
    }

    private mutating func reject(_ message: String, line: Int) {
        mistakes.append(Mistake(line: line, message: message))
    }
}

extension EnvironmentFile {
    private mutating func readAssignment() {
        let start = line
        var key: [UInt8] = []
        while let byte = nextByte, byte != UInt8(ascii: "="), !byte.isLineEnd {
            key.append(byte)
            advance()
        }
        guard nextByte == UInt8(ascii: "=") else {
            reject("is neither KEY=value nor a comment", line: start)
            return
        }
        advance()
        key.removeTrailingBlanks(downTo: 0)
        let value = readValue()
        if let unclosedQuote {
            reject("opens a quote that is never closed", line: unclosedQuote)
        } else {
            add(key: key, value: value, line: start)
        }
    }

    /// Reads to the end of the logical line, in which quoted and plain parts can follow each other.
    private mutating func readValue() -> [UInt8] {
        var value: [UInt8] = []
        // The length to keep: trailing blanks do not count unless they were quoted or escaped.
        var keptLength = 0
        // A quote counts only at the beginning of a part. Within plain text it is an ordinary character.
        var isInPlainText = false
        while let byte = nextByte, !byte.isLineEnd {
            advance()
            switch byte {
            case UInt8(ascii: "'") where !isInPlainText:
                readSingleQuoted(into: &value)
                keptLength = value.count
            case UInt8(ascii: "\"") where !isInPlainText:
                readDoubleQuoted(into: &value)
                keptLength = value.count
            case UInt8(ascii: "\\"):
                isInPlainText = true
                guard let escaped = nextByte else { break }
                skipOne()
                if !escaped.isLineEnd {
                    value.append(escaped)
                }
                keptLength = value.count
            default:
                if byte.isBlank && !isInPlainText { continue }
                isInPlainText = true
                value.append(byte)
            }
        }
        value.removeTrailingBlanks(downTo: keptLength)
        return value
    }

    private mutating func readSingleQuoted(into value: inout [UInt8]) {
        let start = line
        while let byte = nextByte {
            advance()
            guard byte != UInt8(ascii: "'") else { return }
            value.append(byte)
        }
        unclosedQuote = start
    }

    private mutating func readDoubleQuoted(into value: inout [UInt8]) {
        let start = line
        while let byte = nextByte {
            advance()
            switch byte {
            case UInt8(ascii: "\""):
                return
            case UInt8(ascii: "\\"):
                guard let escaped = nextByte else { break }
                skipOne()
                if escaped.isLineEnd { continue }
                if !escaped.isEscapableInDoubleQuotes {
                    value.append(byte)
                }
                value.append(escaped)
            default:
                value.append(byte)
            }
        }
        unclosedQuote = start
    }

    private mutating func skipLine() {
        while let byte = nextByte, !byte.isLineEnd {
            advance()
        }
    }

    /// Skips one character.
    ///
    /// A line end of two bytes is one.
    private mutating func skipOne() {
        let isReturn = nextByte == UInt8(ascii: "\r")
        advance()
        if isReturn && nextByte == UInt8(ascii: "\n") {
            advance()
        }
    }

    private var nextByte: UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    private mutating func advance() {
        let byte = bytes[position]
        position += 1
        // The \n of a \r\n counts the line. A lone \r counts too.
        if byte == UInt8(ascii: "\n") || (byte == UInt8(ascii: "\r") && nextByte != UInt8(ascii: "\n")) {
            line += 1
        }
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    fileprivate var isLineEnd: Bool { self == UInt8(ascii: "\n") || self == UInt8(ascii: "\r") }

    /// `true` for the characters whose backslash a shell removes inside double quotes.
    fileprivate var isEscapableInDoubleQuotes: Bool {
        [UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "`"), UInt8(ascii: "$")].contains(self)
    }
}

extension [UInt8] {
    fileprivate mutating func removeTrailingBlanks(downTo minimum: Int) {
        while count > minimum, let last, last.isBlank {
            removeLast()
        }
    }
}
