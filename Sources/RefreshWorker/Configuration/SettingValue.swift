import Base
import HTTPClient
import Scheduler
import Telemetry

/// Parses the text of a setting into its value, or explains the mistake.
enum SettingValue {
    /// The end of each of Google's client ids.
    static let googleClientIDSuffix = ".apps.googleusercontent.com"

    static func text(_ text: String) throws(InputError) -> String {
        text
    }

    static func metricsLog(_ text: String) throws(InputError) -> LineDestination {
        text == "-" ? .standardOutput : .file(text)
    }

    /// Parses the event whose lines can be left out, and the number of events for each line.
    static func logSample(_ text: String) throws(InputError) -> Int {
        let prefix = "\(EngineLog.sampledEvent)="
        guard text.hasPrefix(prefix) else {
            throw InputError(
                "\(DisplayedText(text)) is not \(prefix)N: only lines of plain successes can be left out of the metrics log"
            )
        }
        return try count(String(text.dropFirst(prefix.count)), in: 0...1_000_000)
    }

    static func endpoint(_ text: String) throws(InputError) -> Endpoint {
        do throws(FormatError) {
            return try Endpoint(text)
        } catch {
            throw InputError("\(DisplayedText(text)): \(error)")
        }
    }

    /// Parses a URL to which paths are added.
    static func baseEndpoint(_ text: String) throws(InputError) -> Endpoint {
        let endpoint = try endpoint(text)
        guard !text.contains("?") else { throw InputError("\(DisplayedText(text)): the URL has a query (?)") }
        return endpoint
    }

    /// Parses one of a few words.
    static func word<Word: RawRepresentable & CaseIterable>(_ text: String) throws(InputError) -> Word
    where Word.RawValue == String {
        guard let word = Word(rawValue: text) else {
            let words = Word.allCases.map(\.rawValue)
            let hint = text.suggestion(among: words)
            throw InputError("\(DisplayedText(text)) is not one of \(words.joined(separator: ", "))\(hint)")
        }
        return word
    }

    /// Parses a number above 0 in plain decimal, since signs and exponents are mistakes in a rate.
    static func rate(_ text: String) throws(InputError) -> Double {
        let isPlain = text.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= $0 }
        guard isPlain, let number = Double(text), number > 0, number <= 100_000 else {
            throw InputError("\(DisplayedText(text)) is not a number above 0 and up to 100000")
        }
        return number
    }

    /// Parses whole seconds within a range.
    static func seconds(_ text: String, in range: ClosedRange<Int>) throws(InputError) -> Duration {
        .seconds(try count(text, in: range, of: " of seconds"))
    }

    /// Parses whole days within a range.
    static func days(_ text: String, in range: ClosedRange<Int>) throws(InputError) -> Duration {
        .seconds(86_400 * (try count(text, in: range, of: " of days")))
    }

    /// Parses a time span of a second to ten years: a whole number and a unit.
    static func span(_ text: String) throws(InputError) -> Duration {
        guard let seconds = secondsOfSpan(text), 1...315_360_000 ~= seconds else {
            throw InputError("\(DisplayedText(text)) is not a time span such as 90s, 30m, 24h or 7d, up to 3650d")
        }
        return .seconds(seconds)
    }

    private static func secondsOfSpan(_ text: String) -> Int? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let last = text.last, let unit = units[last] else { return nil }
        let digits = text.dropLast()
        // More digits could overflow.
        guard digits.utf8.count <= 9, digits.isDecimalNumber, let number = Int(digits) else { return nil }
        return number * unit
    }

    /// Parses a date, which means its first instant in UTC, or a date with a time.
    static func date(_ text: String) throws(InputError) -> Timestamp {
        guard let instant = Timestamp(iso8601: text) ?? Timestamp(iso8601: text + "T00:00:00Z") else {
            throw InputError("\(DisplayedText(text)) is not a date such as 2027-03-31 or 2027-03-31T12:00:00Z")
        }
        return instant
    }

    /// Parses a whole number within a range.
    static func count(_ text: String, in range: ClosedRange<Int>, of unit: String = "") throws(InputError) -> Int {
        guard text.isDecimalNumber, let number = Int(text), range.contains(number) else {
            throw InputError(
                """
                \(DisplayedText(text)) is not a whole number\(unit) from \(range.lowerBound) to \(range.upperBound)
                """
            )
        }
        return number
    }

    /// Parses the words that systemd accepts as a Boolean
    /// (https://www.freedesktop.org/software/systemd/man/252/systemd.syntax.html).
    static func switched(_ text: String) throws(InputError) -> Bool {
        switch text.lowercased() {
        case "yes", "true", "on", "1": return true
        case "no", "false", "off", "0": return false
        default: throw InputError("\(DisplayedText(text)) is neither yes nor no")
        }
    }

    /// Parses elements separated by commas.
    ///
    /// Errors name them by `kind`, as in "client id". Blanks around them and a trailing comma are allowed.
    static func list<Element>(
        _ text: String,
        of kind: String,
        _ read: (String) throws(InputError) -> Element
    ) throws(InputError) -> [Element] {
        let pieces = text.split(separator: ",").map { String($0.trimmingBlanks()) }.filter { !$0.isEmpty }
        guard !pieces.isEmpty else { throw InputError("names no \(kind): name one, or leave this setting out") }
        return try pieces.map(read)
    }

    static func clientIDs(_ text: String) throws(InputError) -> [String] {
        try list(text, of: "client id", InputText.clientID)
    }
}
