extension Int {
    /// The number with its noun, as in "1 token" and "2 tokens".
    package func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}
