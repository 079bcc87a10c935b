package import HTTPClient

/// The nonce that an endpoint wants in the next proof (RFC 9449, section 8.1).
package struct ProofNonce: Hashable, Sendable {
    /// Google's are shorter than a hundred characters. A server that sends a longer one does not get it back.
    package static let maximumLength = 1024

    package let text: String

    /// Takes the value of a header `DPoP-Nonce`, and returns `nil` unless it is one or more characters NQCHAR (RFC
    /// 6749, appendix A).
    ///
    /// Whoever answers in the endpoint's place chooses the value, and the next proof contains it.
    package init?(_ value: String) {
        let bytes = value.utf8
        guard (1...Self.maximumLength).contains(bytes.count), bytes.allSatisfy(Self.isAllowed) else { return nil }
        text = value
    }

    package init?(of response: HTTPResponse) {
        guard let value = response.header("DPoP-Nonce") else { return nil }
        self.init(value)
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x21, 0x23...0x5b, 0x5d...0x7e: true
        default: false
        }
    }
}
