package import HTTPClient

/// The nonce that an endpoint wants in the next proof (RFC 9449, section 8.1).
package struct ProofNonce: Hashable, Sendable {
    /// A longer nonce is not used. Those in RFC 9449 have fewer than a hundred characters.
    package static let maximumLength = 1024

    package let text: String

    /// Takes the value of a header `DPoP-Nonce`. Returns `nil` unless it has one or more of the characters NQCHAR (RFC
    /// 6749, appendix A).
    ///
    /// The value comes from the network and goes into the next proof, so it is checked.
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
