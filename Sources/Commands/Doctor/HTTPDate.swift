import Base
import Worker

/// Parses the instant of a `Date` header, in the only form that servers may send: `Sun, 06 Nov 1994 08:49:37 GMT`
/// (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    static func read(_ header: String) -> Timestamp? {
        let words = header.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(where: { $0 == words[2] }),
            let day = number(words[1], digits: 2, in: 1...31), let year = number(words[3], digits: 4, in: 1970...9999),
            let days = Timestamp.days(toYear: year, month: Int64(month) + 1, day: day)
        else { return nil }
        let parts = words[4].split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = number(parts[0], digits: 2, in: 0...23),
            let minute = number(parts[1], digits: 2, in: 0...59), let second = number(parts[2], digits: 2, in: 0...60)
        else { return nil }
        return Timestamp(secondsSince1970: days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ text: Substring, digits: Int, in range: ClosedRange<Int64>) -> Int64? {
        guard text.utf8.count == digits, let number = Int64(text), range.contains(number) else { return nil }
        return number
    }
}
