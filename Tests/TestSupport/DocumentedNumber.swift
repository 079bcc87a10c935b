import Base
import Foundation
import Testing

/// A part of a sentence in a page, with the numbers that the code has.
///
///     DocumentedNumber("docs/postgres.md", "It waits for \(Lease.span.spelled)").isOnPage   // "… for 30 seconds"
package struct DocumentedNumber: Sendable, CustomTestStringConvertible {
    package let page: String
    package let sentence: String

    package init(_ page: String, _ sentence: String) {
        self.page = page
        self.sentence = sentence
    }

    package var testDescription: String { "\(page): \(sentence)" }

    /// `true` if the page has the sentence, wherever its lines break.
    package var isOnPage: Bool {
        get throws {
            let file = URL(filePath: #filePath).appending(path: "../../../\(page)").standardized
            let words = try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isWhitespace)
            return words.joined(separator: " ").contains(sentence)
        }
    }
}

extension [DocumentedNumber] {
    /// Adds parts of sentences of one page.
    package mutating func add(_ page: String, _ sentences: String...) {
        self += sentences.map { DocumentedNumber(page, $0) }
    }
}

/// Numbers as the pages write them: up to ten, and a hundred, as words.
extension Int {
    private static let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]

    /// The number as in "five", "hundred" and "20,000".
    package var asWord: String {
        if self == 100 { return "hundred" }
        return Self.words.indices.contains(self) ? Self.words[self] : grouped
    }
}

extension Duration {
    package var seconds: Int { Int(wholeMilliseconds / 1000) }
    package var minutes: Int { seconds / 60 }
    package var days: Int { seconds / 86_400 }

    /// The span in its largest whole unit, as in "five minutes", "30 seconds", "half an hour" and "a day".
    package var spelled: String {
        if self == .seconds(1800) { return "half an hour" }
        let units = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)]
        let (name, length) = units.first { seconds >= $0.1 && seconds.isMultiple(of: $0.1) } ?? units[3]
        let count = seconds / length
        guard count == 1 else { return "\(count.asWord) \(name)s" }
        return name == "hour" ? "an hour" : "a \(name)"
    }
}
