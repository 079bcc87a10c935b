/// The parts of an HTTP header (https://www.rfc-editor.org/rfc/rfc9110#section-5).
extension String {
    package var isHeaderName: Bool {
        !isEmpty && bytesSatisfy { $0.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    /// `true` if the only control character is the tab: a line break would start another header.
    package var isHeaderValue: Bool { bytesSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }

    /// The same as `utf8.allSatisfy`, which takes twice as many instructions, for the text of every request.
    private func bytesSatisfy(_ isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = utf8Span.span
        for index in bytes.indices where !isAllowed(bytes[index]) { return false }
        return true
    }
}
