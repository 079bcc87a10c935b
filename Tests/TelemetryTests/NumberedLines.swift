import Base
import Foundation

/// Parses JSON objects, one per line; every line must be terminated.
func parseLines(_ text: String) throws -> [[String: Any]] {
    struct Malformed: Error { let line: String }
    guard text.isEmpty || text.hasSuffix("\n") else { throw Malformed(line: "the last line is not ended") }
    return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { line in
        let value = try? JSONSerialization.jsonObject(with: Data(line.utf8))
        guard let object = value as? [String: Any] else { throw Malformed(line: String(line)) }
        return object
    }
}

/// Makes a line with a number, and padding that makes it `padding` bytes longer.
func numbered(_ number: Int, padding: Int = 0) -> JSONLine {
    var line = JSONLine()
    line.field("number", number)
    if padding > 0 { line.field("padding", String(repeating: "x", count: padding)) }
    return line
}

/// Returns the numbers of the lines in a text, in order.
func numbers(_ text: String) throws -> [Int] {
    try parseLines(text).compactMap { $0["number"] as? Int }
}
