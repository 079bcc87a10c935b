extension String {
    /// Returns the text padded with blanks to a width.
    package func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
