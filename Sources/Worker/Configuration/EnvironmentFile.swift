/// A file of `KEY=value` lines in the syntax of systemd's `EnvironmentFile`.
///
/// It follows systemd's parser (`parse_env_file_internal`,
/// https://github.com/systemd/systemd/blob/v252/src/basic/env-file.c): `#` and `;` begin a comment line, blanks around
/// key and value do not count, a backslash at the end of a line joins the next line, single quotes keep everything
/// literally, and double quotes unescape `\"`, `\\`, `` \` `` and `\$`. Three things that systemd ignores silently are
/// mistakes here, because each would lose a setting: a line without `=`, an unclosed quote, and text that is not UTF-8.
/// A comment ends with its line, as it does since systemd 254.
package struct EnvironmentFile: Equatable, Sendable {
    /// One assignment, and the line of its key.
    package struct Entry: Equatable, Sendable {
        package let key: String
        package let value: String
        let line: Int
    }

    /// A mistake, and the line on which it begins.
    struct Mistake: Equatable, Sendable {
        let line: Int
        let message: String
    }

    package private(set) var entries: [Entry] = []
    private(set) var mistakes: [Mistake] = []

    /// Parses the bytes of a file; collects the mistakes instead of failing, so that all are reported.
    package init(parsing bytes: [UInt8]) {
        var parser = EnvironmentFileParser(bytes: bytes)
        parser.parse(into: &self)
    }

    mutating func add(key: [UInt8], value: [UInt8], line: Int) {
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

    mutating func reject(_ message: String, line: Int) {
        mistakes.append(Mistake(line: line, message: message))
    }
}
