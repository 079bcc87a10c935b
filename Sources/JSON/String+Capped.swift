extension String {
    /// The longest beginning that fits into `limit` bytes of UTF-8, its end marked by `…` where something was left out.
    ///
    /// `limit` is at least the 3 bytes of that mark.
    package func capped(at limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit - 3)
        // A byte of the form 10xxxxxx is the inside of a character: step back to where it begins.
        while utf8[end] & 0b1100_0000 == 0b1000_0000 { end = utf8.index(before: end) }
        return self[..<end] + "…"
    }
}
