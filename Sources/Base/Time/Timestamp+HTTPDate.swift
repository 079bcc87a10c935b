extension Timestamp {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Parses the instant of a `Date` header, in the only form that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`
    /// (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7).
    package init?(httpDate header: String) {
        let words = header.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = Self.months.firstIndex(where: { $0 == words[2] }),
            words[4].utf8.count == 8  // ISO 8601 can leave the seconds out.
        else { return nil }
        self.init(iso8601: "\(words[3])-\(month < 9 ? "0" : "")\(month + 1)-\(words[1])T\(words[4])Z")
    }
}
