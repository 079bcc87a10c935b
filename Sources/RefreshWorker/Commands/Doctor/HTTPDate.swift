import Clocks

/// The instant in a `Date` header, in the one form that servers may send: `Sun, 06 Nov 1994 08:49:37 GMT`
/// (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    static func read(_ header: String) -> Timestamp? {
        let words = header.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(where: { $0 == words[2] }),
            let day = number(words[1], digits: 2, in: 1...31), let year = number(words[3], digits: 4, in: 1970...9999)
        else { return nil }
        let parts = words[4].split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = number(parts[0], digits: 2, in: 0...23),
            let minute = number(parts[1], digits: 2, in: 0...59), let second = number(parts[2], digits: 2, in: 0...60)
        else { return nil }
        let days = daysSince1970(year: year, month: Int64(month) + 1, day: day)
        return Timestamp(secondsSince1970: days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ text: Substring, digits: Int, in range: ClosedRange<Int64>) -> Int64? {
        guard text.utf8.count == digits, let number = Int64(text), range.contains(number) else { return nil }
        return number
    }

    /// Counts in years that begin in March, so that a leap day is a year's last
    /// (https://howardhinnant.github.io/date_algorithms.html#days_from_civil).
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    }
}
