/// Texts cut short, with an ellipsis at the cut: by bytes for records, by scalars for pages, by columns for terminals.
extension String {
    /// Returns the longest prefix that fits into `limit` bytes of UTF-8, followed by `…` if text was removed.
    ///
    /// `limit` must be at least 3, the length of `…` in bytes.
    package func capped(at limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit - 3)
        // A byte of the form 10xxxxxx is inside a character: step back to the start of the character.
        while utf8[end] & 0b1100_0000 == 0b1000_0000 { end = utf8.index(before: end) }
        return self[..<end] + "…"
    }

    /// Returns the first `limit` Unicode scalars, followed by `…` if text was removed.
    package func shortened(to limit: Int) -> String {
        guard unicodeScalars.count > limit else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.prefix(limit))) + "…"
    }

    /// Returns the text cut to a width in characters, of which the ellipsis is one.
    package func cut(toWidth width: Int) -> String { count <= width ? self : prefix(width - 1) + "…" }
}
