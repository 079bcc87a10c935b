/// Counts for people.
extension Int {
    /// The number with a comma after each group of three digits, as in "12,345".
    package var grouped: String {
        let digits = String(magnitude)
        var text = self < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return text
    }

    /// The number with its noun, as in "1 token" and "12345 tokens".
    package func counted(_ noun: String) -> String { "\(self) \(plural(of: noun))" }

    /// The number in groups with its noun, as in "1 token" and "12,345 tokens".
    package func grouped(_ noun: String) -> String { "\(grouped) \(plural(of: noun))" }

    private func plural(of noun: String) -> String { self == 1 ? noun : noun + "s" }
}
